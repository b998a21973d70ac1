"""Candidates: the measured accuracy and latencies of models that several runtimes run, and the lead of one of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.kit.accuracy.report import AccuracyReport, Worst
from engine.kit.bench import stats
from engine.kit.bench.stats import Lead
from engine.reporting import TypedReport


@dataclass(frozen=True)
class Latency:
    """The latency of a candidate at one shape, as the median of each round in milliseconds.

    All candidates take turns in each round, so the medians of one round can be compared.
    """

    shape: Mapping[str, int]
    rounds_ms: tuple[float, ...]

    @property
    def p50_ms(self) -> float:
        """The median of the rounds."""
        return round(stats.median(self.rounds_ms), stats.MS_DIGITS)

    def faster(self, other: Latency) -> list[float]:
        """Return for each round how many times longer the other candidate takes."""
        return [its / own for own, its in zip(self.rounds_ms, other.rounds_ms, strict=True)]


@dataclass(frozen=True)
class CandidateModel:
    """The model that one runtime runs: its accuracy, and its latency at each shape."""

    accuracy: AccuracyReport
    latencies: tuple[Latency, ...]


@dataclass(frozen=True, kw_only=True)
class CandidatesReport(TypedReport):
    """The measured candidates by the names of their runtimes, with the device and the number of threads."""

    cpu: str
    threads: int
    gpu: str = ""
    """The GPU that ran the models; empty where the CPU ran them."""
    candidates: Mapping[str, CandidateModel]
    absent: Mapping[str, str] = field(default_factory=dict)
    """The runtimes that cannot have a model, with the reasons."""


def parameter(runtime: str) -> str:
    """Return the parameter of `run` that gets the model which the plan builds for a runtime."""
    return f"model_{runtime.replace('-', '_')}"


class Timed(Protocol):
    """Something with a latency at each shape."""

    @property
    def latencies(self) -> tuple[Latency, ...]:
        """The latencies, for all candidates at the same shapes and in the same rounds."""


def lead(candidate: Timed, over: Timed) -> Lead:
    """Return the lead of a candidate: the geometric mean over the shapes of the ratios of the latencies.

    Each round gives a ratio for each shape. The lead is the median of the rounds' geometric means, and its interval is
    that of this median.
    """
    ratios = [mine.faster(theirs) for mine, theirs in zip(candidate.latencies, over.latencies, strict=True)]
    means = [math.exp(math.fsum(map(math.log, each)) / len(each)) for each in zip(*ratios, strict=True)]
    return Lead.of_rounds(means)


def fastest(candidates: Mapping[str, Timed], default: str) -> tuple[str, dict[str, Lead]]:
    """Return the name of the candidate to keep, and the lead of every other candidate over the default.

    The default is kept unless the lead of another candidate is above the noise. Of several such candidates, the one
    with the greatest lead is kept.
    """
    leads = {name: lead(each, candidates[default]) for name, each in candidates.items() if name != default}
    sure = {name: each.ratio for name, each in leads.items() if each.is_sure}
    return max(sure, key=lambda name: sure[name], default=default), leads


def without_texts(report: AccuracyReport) -> AccuracyReport:
    """Return the report without the texts of samples, for a report that locks have."""
    return replace(
        report,
        cosine=_without_text(report.cosine),
        max_abs=_without_text(report.max_abs),
        relative=_without_text(report.relative),
        in_batch=_without_text(report.in_batch),
    )


def _without_text(worst: Worst | None) -> Worst | None:
    return None if worst is None else replace(worst, text="")


def medians(rounds: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the median of each round of latencies, which are in seconds, in milliseconds."""
    return tuple(round(stats.median(each) * 1e3, stats.MS_DIGITS) for each in rounds)
