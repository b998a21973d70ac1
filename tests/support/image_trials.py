"""Trials of image models: `recipe new` and `recipe build` on each, and the package's model beside the original."""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

import architecture_table
import numpy as np
from small_builds import SharedExecutor

from engine import api
from engine.commands import new
from engine.errors import UserError
from engine.text import display

LIMIT = 1e-4
"""The largest difference from the original, as a share of the largest number in the output, or of 1."""
BATCHES = (1, 5, 33)
UNMEASURED = ("bench.against=[]",)
"""The build measures no rivals: the latencies of small random models say nothing."""
_PLACE = re.compile(r"^\S+\.yaml:\d+:\d+: ")
_CRASH = re.compile(r"^the step '[^']*' failed$")
_VAGUE = re.compile(f" cannot be exported|{_CRASH.pattern}")
"""Errors whose first fact is the reason."""
_LONGEST = 240

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
        """Write the model below the folder, and return the words of `recipe new`, with its path."""

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


def trial(subject: Subject, *, make: Callable[[Path, Sequence[str]], Path] | None = None) -> Trial:
    """Try a model in a folder of its own; `make` makes its package, from the folder and the words for `recipe new`."""
    if subject.missing:
        return Trial(name=subject.name, verdict="untried", reason=subject.missing)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words = subject.write(folder)
        try:
            package = (make or made)(folder, words)
            return compared(subject.name, subject.cases(folder, package))
        except UserError as error:
            return _refused(subject.name, error)
        except Exception as error:  # noqa: BLE001 - the trial of one model must not end the others
            return Trial(name=subject.name, verdict="failed", reason=display.one_line(repr(error), _LONGEST))


def made(folder: Path, words: Sequence[str]) -> Path:
    """Run `recipe new` and `recipe build` in a project folder, and return the package. Raises UserError.

    All builds of this process share the processes that have imported torch.
    """
    parser, recipe = argparse.ArgumentParser(), folder / "it.yaml"
    new.arguments(parser)
    with contextlib.redirect_stdout(io.StringIO()):
        new.run(parser.parse_args([*words, "-o", str(recipe)]))
    with mock.patch.object(api, "LocalExecutor", SharedExecutor):
        finished = api.build(recipe, set=UNMEASURED)
    for failure in finished.failures:
        raise failure.error
    [package] = finished.packages.values()
    return package


def _refused(name: str, error: UserError) -> Trial:
    """Return the trial that ended with an error of the program: one that is not in plain words is a fault."""
    is_told = not _VAGUE.search(error.what)
    words = ": ".join([_PLACE.sub("", error.what), *error.facts[: 0 if is_told else 1]])
    verdict = "failed" if architecture_table.BARE.search(words) or _CRASH.search(error.what) else "refused"
    return Trial(name=name, verdict=verdict, reason=display.one_line(words, _LONGEST))


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
