"""Measuring: contenders timed in turns, their answers compared, and ratios with intervals."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.kit.bench import interleaving
from frontier import accuracy
from frontier.accuracy import Accuracy
from frontier.contenders import Contender
from frontier.load import ALLOWED, Watch
from frontier.seats import Seat, SeatError

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

_DRAWS = 2000
_REST = 0.025
"""The share that a 95 % interval leaves out at each end."""
TRIES = 3


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
    tries: int = TRIES,
) -> tuple[dict[str, Timings], list[str]]:
    """Time contenders in turns, each in several fresh processes; return the timings by shape, and failures in words.

    `seconds` is the time of a contender at a shape in one process, all rounds together. A measurement during which the
    machine was busy is repeated, up to `tries` in all.
    """
    import numpy as np

    files = {}
    for shape, inputs in shapes.items():
        files[shape] = str(folder / f"inputs-{shape}.npz")
        np.savez(files[shape], **inputs)
    measured: dict[str, list[tuple[dict[str, list[float]], float]]] = {shape: [] for shape in shapes}
    failures: dict[str, str] = {}
    for number in range(processes):
        first = number * len(contenders) // processes
        with contextlib.ExitStack() as stack:
            seats = {}
            for each in (*contenders[first:], *contenders[:first]):
                try:
                    seats[each.name] = stack.enter_context(Seat(each, threads, folder))
                except SeatError as error:
                    failures[each.name] = str(error)
            for shape, file in files.items():
                turn = {"shape": shape, "seconds": seconds / rounds, "clock": clock}
                ready = list(_ready(seats, failures, {"shape": shape, "inputs": file, "seconds": seconds / 5}))
                measured[shape].append(_in_turns(ready, rounds, turn, tries))
    return {
        shape: Timings(tuple(medians for medians, _ in ran), max((others for _, others in ran), default=0.0))
        for shape, ran in measured.items()
    }, [f"{name}: {why}" for name, why in failures.items()]


def _ready(seats: Mapping[str, Seat], failures: dict[str, str], request: Mapping[str, Any]) -> Iterator[Seat]:
    """Yield the seats whose contenders are warm for a shape; those that fail say why in `failures`."""
    for name, seat in seats.items():
        try:
            seat.ask(do="prepare", **request)
            yield seat
        except SeatError as error:
            failures[f"{name} at {request['shape']}"] = str(error)


def _in_turns(
    seats: Sequence[Seat], rounds: int, turn: Mapping[str, Any], tries: int
) -> tuple[dict[str, list[float]], float]:
    """Return the median milliseconds of each round for each seat, and the cores that others used."""
    for _ in range(tries):
        medians: dict[str, list[float]] = {seat.name: [] for seat in seats}
        with Watch(*(seat.pid for seat in seats)) as watch:
            for index in interleaving.turns(rounds, len(seats)):
                medians[seats[index].name].append(statistics.median(seats[index].ask(do="time", **turn)))
        if watch.others <= ALLOWED:
            break
    return medians, watch.others


def answered(contender: Contender, calls: Sequence[Tensors], folder: Path) -> list[np.ndarray]:
    """Return a contender's first output for each call, from a fresh process, kept in `folder`. Raises SeatError."""
    import numpy as np

    flat = {f"{number}/{name}": array for number, call in enumerate(calls) for name, array in call.items()}
    file = folder / f"{_digest(contender, flat)}.npz"
    if not file.is_file():
        inputs = file.with_suffix(".calls.npz")
        np.savez(inputs, **flat)
        with Seat(contender, len(os.sched_getaffinity(0)), folder) as seat:
            seat.ask(do="answer", inputs=str(inputs), out=str(file))
        inputs.unlink()
    stored = np.load(file)
    return [stored[str(number)] for number in range(len(calls))]


def compared(
    contender: Contender, original: Contender, inputs: Inputs, folder: Path, part: Sequence[int] | None
) -> Accuracy:
    """Compare a contender's answers with the original's to the same calls, alone and in batches. Raises SeatError."""
    folder.mkdir(exist_ok=True)
    alone, batches = inputs.alone(), inputs.batches()
    truth = accuracy.embedded(answered(original, alone, folder), alone, part)
    single = accuracy.embedded(answered(contender, alone, folder), alone, part)
    many = accuracy.embedded(answered(contender, batches, folder), batches, part)
    return accuracy.compared(truth, single, many)


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
