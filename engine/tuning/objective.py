"""Objective: what a search minimizes or maximizes, and under which bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.kit.inputs import bench_inputs
from engine.recipe.tune import SIZE, THROUGHPUT

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe
    from engine.tuning.result import TrialRow

_ACCURACIES = ("cosine", "agreement", "rank", "metric")
_LIMITS = ("p50_ms", "p95_ms", "p99_ms", SIZE)
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
    def of(cls, loaded: LoadedRecipe) -> Self:
        """Return the objective of a recipe. Raises RecipeError for a recipe without the section `tune`.

        An axis that the objective does not name has the size of the first shape of `bench`, or of the first profile.
        """
        tune = loaded.recipe.tune
        if tune is None:
            hint = "add `tune: {minimize: {p95_ms: {batch: 1, sequence: 128}}, subject_to: {cosine: 0.99}}`"
            raise loaded.error("the recipe has no section `tune`", hint=hint)
        figure, sizes = tune.objective
        usual = bench_inputs.stated_shapes(loaded.recipe)[0]
        if figure == THROUGHPUT:
            usual = {axis: size for axis, size in usual.items() if axis != _ROWS}
        least = dict(tune.subject_to.stated(*_ACCURACIES))
        for name, value in least.items():
            own = getattr(loaded.recipe.validation, name)
            least[name] = max(value, value if own is None or own.at_least is None else own.at_least)
        return cls(figure, {**usual, **sizes}, least, tune.subject_to.stated(*_LIMITS))

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
        shares = {name: row.value(name) / most - 1 for name, most in self.limits.items()}
        return {name: share for name, share in shares.items() if share > 0}

    def nearest(self, rows: Sequence[TrialRow]) -> Iterator[str]:
        """Yield each bound with the value of the trial that came nearest."""
        for name, least in self.accuracy.items():
            values = [row.accuracies[name] for row in rows if name in row.accuracies]
            best = f"the best is {max(values):.4g}" if values else "not measured"
            yield f"{name}: at least {least:g} is asked for; {best}"
        for name, most in self.limits.items():
            values = [value for row in rows if (value := row.value(name))]
            best = f"the best is {shown(name, min(values))}" if values else "not measured"
            yield f"{name}: at most {shown(name, most)} is asked for; {best}"

    def in_words(self) -> str:
        """Return the objective as text: "the smallest p95_ms at batch 1, sequence 128"."""
        at = ", ".join(f"{axis} {size}" for axis, size in self.sizes.items())
        most = "largest" if self.figure == THROUGHPUT else "smallest"
        return f"the {most} {self.figure}{f' at {at}' if at and self.figure != SIZE else ''}"

    def bounds_in_words(self) -> str:
        """Return all bounds as text: "cosine at least 0.99, p95_ms at most 20 ms"; "no bounds" without any."""
        least = [f"{name} at least {value:g}" for name, value in self.accuracy.items()]
        most = [f"{name} at most {shown(name, value)}" for name, value in self.limits.items()]
        return ", ".join([*least, *most]) or "no bounds"


def shown(figure: str, value: float) -> str:
    """Return a figure with its unit, for people."""
    if figure == SIZE:
        return f"{value / 1e6:.1f} MB"
    return f"{value:.4g} rows/s" if figure == THROUGHPUT else f"{value:.3g} ms"
