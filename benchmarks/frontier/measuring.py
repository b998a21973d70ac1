"""Measuring: fresh processes that time all contenders in turns or compute their answers, and ratios with intervals."""

from __future__ import annotations

import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import program

from frontier import accuracy
from frontier.accuracy import Accuracy
from frontier.contenders import Contender
from frontier.load import ALLOWED

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

_DRAWS = 2000
_REST = 0.025
"""The share that a 95 % interval leaves out at each end."""
_SHOWN = 300


class Inputs(Protocol):
    """The inputs of all calls for the accuracy."""

    def alone(self) -> list[Tensors]:
        """Return a call for each sample."""

    def batches(self) -> list[Tensors]:
        """Return a call for each batch."""


@dataclass(frozen=True)
class Ratio:
    """How many times as long one contender takes as another: the median over all rounds, and its 95 % interval."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"

    def inverse(self) -> Ratio:
        """Return how many times faster the contender is."""
        return Ratio(1 / self.median, 1 / self.high, 1 / self.low)


@dataclass(frozen=True)
class Timings:
    """The medians of rounds in milliseconds: for each fresh process, for each contender a list of rounds."""

    processes: tuple[Mapping[str, Sequence[float]], ...]
    others: float
    """The most cores that other processes used on average during one measurement."""

    @property
    def busy(self) -> bool:
        """Whether other processes used more of the machine than a small share."""
        return self.others > ALLOWED

    def median(self, name: str) -> float:
        """Return the median of all rounds of a contender in milliseconds."""
        return statistics.median(value for process in self.processes for value in process[name])

    def has(self, name: str) -> bool:
        """Tell whether a contender was timed in every process."""
        return all(name in process for process in self.processes)

    def ratio(self, name: str, base: str) -> Ratio:
        """Return the paired ratio of two contenders.

        The interval is a bootstrap in two stages: processes are drawn with replacement, and rounds of each drawn
        process, because the rounds of a process share its memory layout.
        """
        pairs = [
            [one / other for one, other in zip(process[name], process[base], strict=True)] for process in self.processes
        ]
        generator = random.Random(len(pairs))
        draws = sorted(
            statistics.median(
                value
                for drawn in generator.choices(pairs, k=len(pairs))
                for value in generator.choices(drawn, k=len(drawn))
            )
            for _ in range(_DRAWS)
        )
        middle = statistics.median(value for process in pairs for value in process)
        return Ratio(middle, draws[int(_DRAWS * _REST)], draws[int(_DRAWS * (1 - _REST)) - 1])


def timed(
    contenders: Sequence[Contender],
    shapes: Mapping[str, Tensors],
    folder: Path,
    *,
    threads: int,
    processes: int,
    rounds: int,
    seconds: float,
    clock: str,
) -> tuple[dict[str, Timings], list[str]]:
    """Time contenders in several fresh processes; return the timings by shape, and the failures in words.

    `seconds` is the time of a contender at a shape in one process, all rounds together.
    """
    import numpy as np

    files = {}
    for shape, inputs in shapes.items():
        files[shape] = str(folder / f"inputs-{shape}.npz")
        np.savez(files[shape], **inputs)
    measured: dict[str, list[dict[str, Any]]] = {shape: [] for shape in shapes}
    failures: dict[str, str] = {}
    for number in range(processes):
        first = number * len(contenders) // processes
        given = {
            "do": "time",
            "contenders": [asdict(each) for each in (*contenders[first:], *contenders[:first])],
            "threads": threads,
            "shapes": files,
            "rounds": rounds,
            "seconds": seconds,
            "warm_up": seconds / 5,
            "clock": clock,
        }
        answer = json.loads(_worker(given, folder / "times.json").read_text())
        failures |= answer["failed"]
        for shape, each in answer["shapes"].items():
            measured[shape].append(each)
    return {
        shape: Timings(
            tuple(
                {name: [statistics.median(one) for one in rows] for name, rows in each["ms"].items()} for each in ran
            ),
            max(each["others"] for each in ran),
        )
        for shape, ran in measured.items()
    }, [f"{name}: {why}" for name, why in failures.items()]


def answered(contender: Contender, calls: Sequence[Tensors], folder: Path) -> list[np.ndarray]:
    """Return a contender's first output for each call, computed in a fresh process and kept in `folder`."""
    import numpy as np

    flat = {f"{number}/{name}": array for number, call in enumerate(calls) for name, array in call.items()}
    file = folder / f"{_digest(contender, flat)}.npz"
    if not file.is_file():
        inputs = folder / "calls.npz"
        np.savez(inputs, **flat)
        cores = len(os.sched_getaffinity(0))
        given = {"do": "answer", "contenders": [asdict(contender)], "threads": cores, "inputs": str(inputs)}
        _worker(given, file)
    stored = np.load(file)
    return [stored[str(number)] for number in range(len(calls))]


def compared(
    contender: Contender, original: Contender, inputs: Inputs, folder: Path, part: Sequence[int] | None
) -> Accuracy:
    """Compare a contender's answers with the original's to the same calls, alone and in batches."""
    folder.mkdir(exist_ok=True)
    alone, batches = inputs.alone(), inputs.batches()
    truth = accuracy.embedded(answered(original, alone, folder), alone, part)
    single = accuracy.embedded(answered(contender, alone, folder), alone, part)
    many = accuracy.embedded(answered(contender, batches, folder), batches, part)
    return accuracy.compared(truth, single, many)


def _worker(given: Mapping[str, Any], answer: Path) -> Path:
    """Run a worker in a fresh process. Raises RuntimeError with the end of its output where it fails."""
    request = answer.with_suffix(".request.json")
    request.write_text(json.dumps(given))
    here = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "frontier.worker", str(request), str(answer)]
    done = subprocess.run(command, env=program.environment(here), capture_output=True, cwd=answer.parent, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip()[-_SHOWN:])
    return answer


def _digest(contender: Contender, calls: Mapping[str, np.ndarray]) -> str:
    """Return a digest of a contender's files and of its calls."""
    digest = hashlib.sha256(json.dumps([contender.kind, dict(contender.options)], sort_keys=True).encode())
    path = Path(contender.path)
    beside = path.parent.glob(f"{path.stem}*") if path.is_file() else path.rglob("*")
    for file in sorted(file for file in beside if file.is_file()):
        digest.update(file.name.encode() + file.read_bytes())
    for name, array in calls.items():
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()[:24]
