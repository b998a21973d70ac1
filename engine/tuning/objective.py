"""Objective: what a search minimizes or maximizes, under which bounds, and which of two trials is better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.kit.inputs import bench_inputs
from engine.recipe.tune import LATENCIES, SIZE, THROUGHPUT

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe
    from engine.tuning.result import TrialRow

_AXIS_OF_ROWS = "batch"


@dataclass(frozen=True)
class Objective:
    """The figure that a search is for, the sizes at which it is measured, and the bounds."""

    figure: str
    """`size`, `throughput` or a latency such as `p95_ms`."""
    sizes: Mapping[str, int]
    """The sizes of the axes of the measured inputs; without `batch` where the search chooses it."""
    accuracy: Mapping[str, float]
    """The least accuracies, which `validate` judges in each trial; a stricter bound of the recipe itself stays."""
    limits: Mapping[str, float]
    """The greatest latencies in milliseconds, and the greatest size in bytes."""

    @classmethod
    def of(cls, loaded: LoadedRecipe) -> Self:
        """Return the objective of a recipe. Raises RecipeError for a recipe without the section `tune`.

        An axis that the objective does not name has the size of the first shape of `bench`, or of the first profile.
        """
        tune = loaded.recipe.tune
        if tune is None:
            hint = "add `tune: {minimize: {p95_ms: {batch: 1, sequence: 128}}, subject_to: {cosine: 0.99}}`"
            raise loaded.error("the recipe has no section `tune`", hint=hint)
        sizes = {**bench_inputs.stated_shapes(loaded.recipe)[0], **tune.sizes}
        if tune.figure == THROUGHPUT and _AXIS_OF_ROWS not in tune.sizes:
            sizes.pop(_AXIS_OF_ROWS, None)
        own = {name: getattr(loaded.recipe.validation, name) for name in tune.subject_to.accuracy}
        stated = {name: bound.at_least for name, bound in own.items() if bound is not None and bound.at_least is not None}
        accuracy = {name: max(least, stated.get(name, least)) for name, least in tune.subject_to.accuracy.items()}
        return cls(tune.figure, sizes, accuracy, tune.subject_to.limits)

    @property
    def chooses_rows(self) -> bool:
        """Whether the search chooses how many rows a call has, and how many copies of the model run at once."""
        return self.figure == THROUGHPUT and _AXIS_OF_ROWS not in self.sizes

    @property
    def judged(self) -> Mapping[str, float]:
        """The bounds of `validate` in each trial, by the paths of their fields."""
        return {f"validate.{name}": least for name, least in self.accuracy.items()}

    def value(self, row: TrialRow) -> float | None:
        """Return the figure of a trial; None where it was not measured."""
        return row.size if self.figure == SIZE else row.figures.get(self.figure)

    def cost(self, row: TrialRow, baseline: TrialRow) -> float | None:
        """Return the figure of a trial as a share of that of the baseline; the smaller, the better."""
        own, other = self.value(row), self.value(baseline)
        if not own or not other:
            return None
        return other / own if self.figure == THROUGHPUT else own / other

    def missed(self, row: TrialRow) -> dict[str, float]:
        """Return the limits that a measured trial does not keep: the name of each, and by which share it is missed."""
        values = {**row.figures, SIZE: row.size}
        over = {name: (values.get(name) or 0.0) / most - 1 for name, most in self.limits.items()}
        return {name: share for name, share in over.items() if share > 0}

    def nearest(self, rows: Sequence[TrialRow]) -> Iterator[str]:
        """Yield for each bound the value of the trial that came nearest."""
        for name, least in self.accuracy.items():
            best = max((row.accuracies[name] for row in rows if name in row.accuracies), default=None)
            yield f"{name}: at least {least:g} is asked for; {'not measured' if best is None else f'the best is {best:.4g}'}"
        for name, most in self.limits.items():
            values = [row.size if name == SIZE else row.figures.get(name) for row in rows]
            best = min((value for value in values if value is not None), default=None)
            measured = "not measured" if best is None else f"the best is {shown(name, best)}"
            yield f"{name}: at most {shown(name, most)} is asked for; {measured}"

    def bounds_in_words(self) -> str:
        """Return all bounds as text: "cosine at least 0.99, p95_ms at most 20"; "" without bounds."""
        least = [f"{name} at least {value:g}" for name, value in self.accuracy.items()]
        return ", ".join([*least, *(f"{name} at most {shown(name, value)}" for name, value in self.limits.items())])

    def in_words(self) -> str:
        """Return the objective as text: "the smallest p95_ms at batch 1, sequence 128"."""
        at = ", ".join(f"{axis} {size}" for axis, size in self.sizes.items())
        most = "largest" if self.figure == THROUGHPUT else "smallest"
        return f"the {most} {self.figure}{f' at {at}' if at and self.figure != SIZE else ''}"


def shown(name: str, value: float) -> str:
    """Return a figure with its unit, for people."""
    if name == SIZE:
        return f"{value / 1e6:.1f} MB"
    return f"{value:.3g} ms" if name in LATENCIES else f"{value:.4g} rows/s" if name == THROUGHPUT else f"{value:.4g}"
