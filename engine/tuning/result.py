"""The result of a search: a row for each trial, the Pareto front, the chosen point, and why it was chosen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.recipe.tune import SIZE, THROUGHPUT
from engine.reporting import WRITTEN, TypedReport
from engine.text import quantities, sizes

ENOUGH_SAMPLES = 50
"""With fewer samples, the accuracy of the result says little about other inputs."""
_RULE_OF_THREE = 3.0
"""Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", 1983; docs/tune.md says it in words."""
_WHOLE = 1000  # from here on, figures have no decimal places


@dataclass(frozen=True, kw_only=True)
class TrialRow(TypedReport):
    """What a trial gave: accuracies, size and times, as far as they were measured."""

    number: int
    """The trials are counted from 1; the first is the recipe as it is written."""
    point: Mapping[str, object]
    state: Literal["validated", "missed", "failed", "cut"]
    """`validated`: all bounds are kept. `missed`: one is not. `cut`: surely slow, timed no further."""
    why: str = ""
    """Which bound is missed, why a job failed, or how slow the trial is."""
    accuracies: Mapping[str, float] = field(default_factory=dict)
    """The accuracies that can have bounds: `cosine`, of the worst sample, `agreement`, `rank` and `metric`."""
    mean_cosine: float | None = None
    samples: int = 0
    """How many samples `validate` compared, without cases that are made of several, or of random numbers."""
    size: int | None = None
    """The bytes of the built model."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """The measured `p50_ms`, `p95_ms`, `p99_ms` and `throughput`, in rows per second."""
    lead: float | None = None
    """How many times as fast as the baseline the trial is, in turns with it."""
    interval: tuple[float, float] | None = None
    """The 95 % confidence interval of the lead; None for the baseline."""
    seconds: float = 0.0
    """The time of the trial's jobs by their records, without those that an earlier trial of the search had."""

    @property
    def name(self) -> str:
        """The point in one line, as the fields and values of `--set`."""
        return in_words(self.point)

    @property
    def values(self) -> Mapping[str, float]:
        """What was measured and can have a bound, by the name of the bound."""
        return {**self.accuracies, **({SIZE: self.size} if self.size else {}), **self.figures}

    @property
    def cells(self) -> Mapping[str, str]:
        """What people are shown of the trial besides its point, by the name of what it is."""
        lead = {} if self.interval is None else {"lead": self.lead_in_words}
        state = f"{self.state}: {self.why}" if self.why else self.state
        measured = {name: shown(name, value) for name, value in self.values.items()}
        return {**measured, **lead, "work": quantities.duration(self.seconds), "state": state}

    @property
    def in_words(self) -> str:
        """The trial in one line."""
        return f"{self.name}: {', '.join(f'{name} {text}' for name, text in self.cells.items())}"

    @property
    def loss(self) -> float:
        """The lost accuracy, from 0 on: of the worst sample's cosine, or else of the first other accuracy."""
        return 1 - self.accuracies.get("cosine", next(iter(self.accuracies.values()), 1.0))

    @property
    def lead_in_words(self) -> str:
        """The lead with its interval: "1.31 x [1.28, 1.34]"."""
        low, high = self.interval or (1.0, 1.0)
        return f"{self.lead or 1.0:.2f} x [{low:.2f}, {high:.2f}]"

    def of_others(self, bound: float) -> str:
        """Return in words what the cosine says about other samples, for a bound on it, where samples were compared."""
        mean, worst = (shown("cosine", each) for each in (self.mean_cosine or 0.0, self.accuracies["cosine"]))
        share = f"at most {min(1.0, _RULE_OF_THREE / self.samples):.1%} of other samples are expected below {bound:.6g}"
        return f"cosine mean {mean}, worst {worst} of {self.samples} samples; {share} (95 %, rule of three)"


@dataclass(frozen=True, kw_only=True)
class TuneResult(TypedReport):
    """What a search found so far."""

    recipe: str
    objective: str
    bounds: str
    trials: tuple[TrialRow, ...]
    front: tuple[int, ...]
    """The numbers of the chosen trial and of those that no other one beats in accuracy, speed and size at once."""
    refused: tuple[Mapping[str, Any], ...] = field(default=(), metadata=WRITTEN)
    """Each `point` that is no trial, and `why`: the target cannot have it, or it gives the model of another one."""
    finals: tuple[int, ...] = field(default=(), metadata=WRITTEN)
    """The numbers of the trials of the last race, whose figures they have: the baseline and the best trials."""
    chosen: int | None = field(default=None, metadata=WRITTEN)
    """The number of the chosen trial; None where no trial keeps the bounds, or the search was interrupted."""
    why: str = field(default="", metadata=WRITTEN)
    seconds: float = 0.0
    """The time of all jobs of the search by their records."""
    notes: tuple[str, ...] = field(default=(), metadata=WRITTEN)
    """What the accuracy of the chosen trial says about other samples, and what a reader must know beside it."""
    interrupted: bool = field(default=False, metadata=WRITTEN)

    def row(self, number: int) -> TrialRow:
        """Return the row of a trial."""
        return self.trials[number - 1]


def front(rows: Sequence[TrialRow], chosen: int | None = None) -> tuple[int, ...]:
    """Return the numbers of the timed rows that no other one dominates: as good in all, and better in something.

    The chosen row is one of them: another one may lead it by no more than the noise.
    """
    scores = {row.number: (row.loss, 1 / row.lead, row.size or 0) for row in rows if row.lead}

    def is_beaten(own: tuple[float, ...]) -> bool:
        alike = (zip(other, own, strict=True) for other in scores.values() if other != own)
        return any(all(theirs <= mine for theirs, mine in pairs) for pairs in alike)

    return tuple(number for number, own in scores.items() if number == chosen or not is_beaten(own))


def in_words(point: Mapping[str, object]) -> str:
    """Return a point in one line, as the fields and values of `--set`."""
    values = {path: value if isinstance(value, str) else json.dumps(value) for path, value in point.items()}
    return " ".join(f"{path}={value}" for path, value in values.items()) or "as written"


def shown(name: str, value: float) -> str:
    """Return the value of a figure or a bound. Its unit is in the name, or else beside the value."""
    if name == SIZE:
        return sizes.decimal(value)
    if name == THROUGHPUT or name.endswith("_ms"):
        digits = f"{value:.4g}" if value < _WHOLE else f"{value:.0f}"
        return f"{digits} rows/s" if name == THROUGHPUT else digits
    return f"1 - {1 - value:.1e}" if f"{value:.6g}" == "1" and value < 1 else f"{value:.6g}"
