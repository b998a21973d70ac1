"""Trials of image models: `recipe new` and `recipe build` on each, and the package's model beside the original."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import architecture_table
import numpy as np

from engine.text import display

LIMIT = 1e-4
"""The largest difference from the original, as a share of the largest number in the output, or of 1."""
BATCHES = (1, 5, 33)
UNMEASURED = ("--set", "bench.shapes=[]", "--set", "bench.against=[]")
"""The build measures no latencies: those of small random models say nothing."""
_ERROR = re.compile(r"^error: (.*)$", re.MULTILINE)
_PLACE = re.compile(r"^it\.yaml:\d+:\d+: ")
_SECONDS = 900
_LONGEST = 240

Ended = subprocess.CompletedProcess[str]
Run = Callable[..., Ended]
Case = tuple[str, Mapping[str, Any], Mapping[str, Any]]
"""Words for the inputs, the outputs of the package's model, and those of the original."""


class Subject(Protocol):
    """A model that is tried."""

    @property
    def name(self) -> str:
        """The name of the row: unique, and the same in each run."""

    @property
    def missing(self) -> str:
        """Why this machine cannot try it; "" where it can."""

    def write(self, folder: Path) -> tuple[str, ...]:
        """Write the model below the folder, and return the words behind `recipe new`."""

    def cases(self, folder: Path, package: Path) -> Iterator[Case]:
        """Run the original and the package's model on the same files."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of a model."""

    name: str
    verdict: str
    """`built`, `refused` (by one error of the program), `untried`; or what must not be: `wrong`, `failed`."""
    worst: float | None = None
    """The largest difference from the original."""
    at: str = ""
    """The inputs with the largest difference."""
    reason: str = ""


def trial(subject: Subject, *, run: Run | None = None) -> Trial:
    """Try a model in a folder of its own, with a store of its own; `run` runs the program in a folder."""
    if subject.missing:
        return Trial(name=subject.name, verdict="untried", reason=subject.missing)
    run = run or recipe
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        new = run(folder, "new", *subject.write(folder), "-o", "it.yaml")
        if new.returncode:
            return _ended(subject.name, _error_of_new(new))
        build = run(folder, "build", "it.yaml", *UNMEASURED, "--json")
        if build.returncode:
            return _ended(subject.name, _error_of_build(build))
        try:
            [package] = [path for path in (folder / "build").iterdir() if path.is_dir()]
            return compared(subject.name, subject.cases(folder, package))
        except Exception as error:  # noqa: BLE001 - the trial of one model must not end the others
            return Trial(name=subject.name, verdict="failed", reason=display.one_line(repr(error), _LONGEST))


def recipe(folder: Path, *words: str) -> Ended:
    """Run the program in a folder, without the settings of the user."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECIPE_")}
    command = [sys.executable, "-m", "engine", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
    )


def _ended(name: str, error: str) -> Trial:
    """Return the trial of a command that ended with an error: one in plain words is a refusal, another one a fault."""
    verdict = "failed" if not error or architecture_table.BARE.search(error) else "refused"
    return Trial(name=name, verdict=verdict, reason=display.one_line(error or "no error was printed", _LONGEST))


def _error_of_new(done: Ended) -> str:
    """Return the error that a command printed; "" where it is not one error in words."""
    errors = _ERROR.findall(done.stderr)
    return _PLACE.sub("", errors[0]) if len(errors) == 1 and "Traceback" not in done.stderr else ""


def _error_of_build(done: Ended) -> str:
    """Return the error of the first job that failed, with the first of its facts; or that of the whole command."""
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    failed = next((event["error"] for event in events if event.get("error")), None)
    if failed is None:
        return _error_of_new(done)
    return ": ".join([failed["what"], *failed["facts"][:1]])


def compared(name: str, cases: Iterable[Case]) -> Trial:
    """Return the verdict of outputs of a package's model and of the original."""
    worst, at = -1.0, ""
    for words, actual, expected in cases:
        for output, array in actual.items():
            if output not in expected:
                return Trial(name=name, verdict="failed", reason=f"the original has no output {output}")
            distance = difference(array, expected[output])
            if distance > worst:
                worst, at = distance, f"{output}, {words}"
    if not at:
        return Trial(name=name, verdict="failed", reason="the package's model has no outputs")
    return Trial(name=name, verdict="built" if worst <= LIMIT else "wrong", worst=float(f"{worst:.1e}"), at=at)


def difference(actual: Any, expected: Any) -> float:
    """Return the largest difference of two arrays, as a share of the largest number expected, or of 1.

    Two arrays are infinitely far apart if their shapes differ, or if one has a number where the other has none.
    """
    if actual.shape != expected.shape:
        return math.inf
    wide, own = np.asarray(expected, "float64"), np.asarray(actual, "float64")
    if not wide.size:
        return 0.0
    distance = float(np.abs(own - wide).max() / max(1.0, np.abs(wide).max()))
    return distance if math.isfinite(distance) else math.inf
