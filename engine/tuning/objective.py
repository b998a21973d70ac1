"""Objective: what a search minimizes or maximizes, and under which bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.kit.inputs import bench_inputs
from engine.recipe.tune import SIZE, THROUGHPUT
from engine.tuning.result import shown

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe
    from engine.recipe.tune import Tune
    from engine.tuning.result import TrialRow

_ACCURACIES = ("cosine", "agreement", "rank", "metric")
_ROWS = "batch"


@dataclass(frozen=True)
class Objective:
    """The figure that a search is for, the sizes at which it is measured, and the bounds."""

    figure: str
    """`size`, `throughput`, `p50_ms` or `p95_ms`."""
    sizes: Mapping[str, int]
    """The sizes of the axes of the measured inputs; without `batch` where the search chooses it."""
    accuracy: Mapping[str, float]
    """The least accuracies, which `validate` judges in each trial; a stricter bound of the recipe itself stays."""
    limits: Mapping[str, float]
    """The greatest latencies in milliseconds, and the greatest size in bytes."""

    @classmethod
    def of(cls, recipe: Recipe, tune: Tune) -> Self:
        """Return the objective of a recipe with this section.

        An axis that the objective does not name has the size of the first shape of `bench`, or of the first profile.
        """
        figure, sizes = tune.objective
        usual = dict(bench_inputs.stated_shapes(recipe)[0])
        if figure == THROUGHPUT:
            usual.pop(_ROWS, None)
        limits = tune.subject_to.model_dump(exclude_none=True)
        least = {name: limits.pop(name) for name in _ACCURACIES if name in limits}
        for name, value in least.items():
            own = getattr(recipe.validation, name)
            least[name] = max(value, value if own is None or own.at_least is None else own.at_least)
        return cls(figure, {**usual, **sizes}, least, limits)

    @property
    def chooses_rows(self) -> bool:
        """Whether the search chooses how many rows a call has, and how many copies of the model run at once."""
        return self.figure == THROUGHPUT and _ROWS not in self.sizes

    @property
    def judged(self) -> Mapping[str, float]:
        """The bounds of `validate` in each trial, by the paths of their fields."""
        return {f"validate.{name}": least for name, least in self.accuracy.items()}

    def over(self, row: TrialRow) -> Mapping[str, float]:
        """Return by which share a measured trial is over each limit that it does not keep."""
        shares = {name: row.values.get(name, 0.0) / most - 1 for name, most in self.limits.items()}
        return {name: share for name, share in shares.items() if share > 0}

    @property
    def bounds(self) -> Mapping[str, str]:
        """All bounds in words, by name: "at least 0.99", "at most 20 ms"."""
        least = {name: f"at least {shown(name, value)}" for name, value in self.accuracy.items()}
        return {**least, **{name: f"at most {shown(name, value)}" for name, value in self.limits.items()}}

    def nearest(self, rows: Sequence[TrialRow]) -> Iterator[str]:
        """Yield each bound with the value of the trial that came nearest."""
        for name, bound in self.bounds.items():
            values = [row.values[name] for row in rows if name in row.values]
            best = max(values, default=None) if name in self.accuracy else min(values, default=None)
            nearest = "not measured" if best is None else f"the best is {shown(name, best)}"
            yield f"{name} {bound} is asked for; {nearest}"

    def __str__(self) -> str:
        """Return the objective as text: "the smallest p95_ms at batch 1, sequence 128"."""
        at = ", ".join(f"{axis} {size}" for axis, size in self.sizes.items())
        most = "largest" if self.figure == THROUGHPUT else "smallest"
        return f"the {most} {self.figure}{f' at {at}' if at and self.figure != SIZE else ''}"
