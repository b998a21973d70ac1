"""Verdicts: the bounds that the contest was set up for, each with what was measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from frontier.accuracy import Accuracy
from frontier.building import EAGER, OURS, PLAIN
from frontier.contenders import Contender
from frontier.measuring import Ratio, Timings

OURS_BEST, OURS_ORT = OURS.format("auto"), OURS.format("onnxruntime")
TUNED = "OpenVINO, tuned by hand"
_INT8_TOOLS = frozenset({"olive", "optimum"})
_BASELINES = frozenset({"ours", "fp32", "torch"})
OF_TOOLS = {"1x16": 0.95, "1x128": 0.80, "8x128": 0.70}
OF_TOOLS_WITH_ORT = 0.90
OF_PLAIN = {"1x16": 0.40, "1x128": 0.40, "8x128": 0.33}
OF_TUNED = 1.00
OF_EAGER = {"1x16": 0.20, "1x128": 0.43}
OF_BEST_PEER = 1.05
OWN_BOUND = 0.95
"""The default bound of int8 recipes for each cosine: engine/kit/accuracy/thresholds.py."""
MEAN, WORST, ALONE_IN_BATCH, NEIGHBOURS = 0.998, 0.99, 0.999, 0.95


@dataclass(frozen=True)
class Verdict:
    """A bound, and the measurement that keeps or breaks it."""

    what: str
    bound: str
    measured: str
    kept: bool | None
    """Whether the bound is kept; None where nothing was measured, or where the interval covers the bound."""

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return {True: "kept", False: "BROKEN", None: "open"}[self.kept]

    def row(self) -> list[str]:
        """Return the verdict's row of a table."""
        return [self.what, self.bound, self.measured, self.word]


@dataclass(frozen=True)
class Results:
    """Everything that was measured of one subject. Timings are by number of threads and shape."""

    contenders: Sequence[Contender]
    accuracies: Mapping[str, Accuracy]
    timings: Mapping[int, Mapping[str, Timings]]

    def best(self, families: frozenset[str], timings: Timings) -> str | None:
        """Return the fastest valid contender of some families; None where there is none."""
        names = [
            each.name
            for each in self.contenders
            if each.family in families and timings.has(each.name) and self.valid(each.name)
        ]
        return min(names, key=timings.median, default=None)

    def valid(self, name: str) -> bool:
        """Whether a contender keeps the mean cosine that makes it a peer."""
        return name in self.accuracies and self.accuracies[name].valid

    @property
    def peers(self) -> frozenset[str]:
        """The families of all peers that make int8 models."""
        return frozenset(each.family for each in self.contenders) - _BASELINES


def of_tuned_subject(results: Results) -> Iterator[Verdict]:
    """Yield the verdicts for the subject that the project is tuned on."""
    yield from _accuracy(results, OURS_BEST)
    for threads, shape, timings in _each(results):
        place = f"{shape}, {threads} thread{'s' * (threads > 1)}"
        tools = results.best(_INT8_TOOLS, timings)
        yield _at_most(OURS_BEST, tools, OF_TOOLS.get(shape), timings, place)
        yield _at_most(OURS_BEST, PLAIN, OF_PLAIN.get(shape), timings, place)
        yield _at_most(OURS_BEST, TUNED, OF_TUNED, timings, place)
        yield _at_most(OURS_ORT, tools, OF_TOOLS_WITH_ORT, timings, place)
        if shape in OF_EAGER:
            yield _at_most(OURS_BEST, EAGER, OF_EAGER[shape], timings, place)


def of_other_subject(results: Results) -> Iterator[Verdict]:
    """Yield the verdicts for a subject that nobody tuned for: speed beside the best peer, and the recipe's bound.

    A build that refuses a model for its bounds is no silent miss.
    """
    accuracy = results.accuracies.get(OURS_BEST)
    what = f"{OURS_BEST}: cosine worst, alone and in batches"
    if accuracy is None:
        why = next((each.absent for each in results.contenders if each.name == OURS_BEST), "")
        yield Verdict(what, f">= {OWN_BOUND}", f"no model: {why}" if why else "not measured", None)
    else:
        yield Verdict(what, f">= {OWN_BOUND}", f"{accuracy.least:.4f}", accuracy.least >= OWN_BOUND)
    for threads, shape, timings in _each(results):
        place = f"{shape}, {threads} thread{'s' * (threads > 1)}"
        best = results.best(results.peers | {"fp32"}, timings)
        yield _at_most(OURS_BEST, best, OF_BEST_PEER, timings, place)


def _accuracy(results: Results, name: str) -> Iterator[Verdict]:
    accuracy = results.accuracies.get(name)
    if accuracy is None:
        yield Verdict(f"{name}: accuracy", "", "not measured", None)
        return
    for what, least, value in (
        ("cosine mean, alone", MEAN, accuracy.mean),
        ("cosine worst, alone", WORST, accuracy.worst),
        ("cosine mean, in batches", MEAN, accuracy.mean_in_batch),
        ("cosine worst, in batches", WORST, accuracy.worst_in_batch),
        ("alone against in a batch, worst", ALONE_IN_BATCH, accuracy.alone_in_batch),
    ):
        yield Verdict(f"{name}: {what}", f">= {least}", f"{value:.4f}", value >= least)
    low, high = interval(accuracy.neighbours, accuracy.sentences)
    measured = f"{accuracy.neighbours:.3f} ({low:.3f} to {high:.3f})"
    kept = None if low < NEIGHBOURS <= high else accuracy.neighbours >= NEIGHBOURS
    yield Verdict(f"{name}: same nearest neighbour", f">= {NEIGHBOURS}", measured, kept)


def interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval (Wilson's) of a share of `count` independent sentences."""
    z = statistics.NormalDist().inv_cdf(0.975)
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return middle - half, middle + half


def _each(results: Results) -> Iterator[tuple[int, str, Timings]]:
    for threads, shapes in results.timings.items():
        for shape, timings in shapes.items():
            yield threads, shape, timings


def _at_most(name: str, base: str | None, bound: float | None, timings: Timings, place: str) -> Verdict:
    what = f"{name} of {base or 'the best valid peer'} at {place}"
    if bound is None or base is None or not timings.has(name) or not timings.has(base):
        return Verdict(what, "" if bound is None else f"<= {bound:.2f}", "not measured", None)
    ratio = timings.ratio(name, base)
    return Verdict(what, f"<= {bound:.2f}", str(ratio), _kept(ratio, bound))


def _kept(ratio: Ratio, bound: float) -> bool | None:
    """Return True or False where the whole interval lies on one side of the bound, else None."""
    if ratio.high <= bound:
        return True
    return False if ratio.low > bound else None
