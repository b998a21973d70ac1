"""Layouts: the measured times of the two layouts of a package, and the one that loses least in its worst case."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from engine.errors import StepError
from engine.kit.bench import report as bench_report
from engine.kit.bench.report import ServerReport
from engine.kit.bench.stats import Lead
from engine.kit.choice.candidates import Latency, Timed
from engine.reporting import WRITTEN, TypedReport
from engine.system import regular
from engine.text import lists

_FILE = "layout.json"
"""The file beside a built model that names the layout of its package; it holds no figures."""
_LAYOUT, _PADDING = "layout", "padding"
CLIENTS, LENGTHS = "clients", "lengths"
"""Keys of the shape of a measured case: how many clients send requests, and how many lengths their texts have."""


@dataclass(frozen=True)
class TimedLayout:
    """A package in one layout, through a server: the time for an answer in each case, the median of each round.

    The shape of a case has the number of `clients` that send one request after the other, and either the sizes of a
    request or the number of different `lengths` of the texts. Nothing is there where there was nothing to compare with.
    """

    latencies: tuple[Latency, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LayoutsReport(TypedReport):
    """The measured layouts by their names, with the CPU or GPU, the number of threads and the server."""

    version: ClassVar[int] = 2

    cpu: str
    threads: int
    layouts: Mapping[str, TimedLayout]
    gpu: str | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    """The layouts that the package cannot have, with the reasons."""
    paddings: Mapping[str, TimedLayout] = field(default_factory=dict)
    """Texts of different lengths from several clients at once, without padding and padded to buckets, in the faster
    layout; empty for a recipe that names its padding.
    """
    server: ServerReport | None = None
    """The server that measured; None where one layout alone is possible, and none was started."""


@dataclass(frozen=True, kw_only=True)
class LayoutReport(TypedReport):
    """The chosen layout and padding, and the figures that decided."""

    version: ClassVar[int] = 2

    layout: str
    padding: str = field(default="none", metadata=WRITTEN)
    leads: Mapping[str, Lead] = field(default_factory=dict)
    """The measured cases in words -> how many times as fast as the other layout the chosen one answers there."""
    padding_lead: Lead | None = None
    """How many times faster requests of several clients are answered with padding; None where it was not measured."""
    absent: Mapping[str, str] = field(default_factory=dict)
    cpu: str
    threads: int
    gpu: str | None = None
    server: ServerReport | None = None

    def lines(self) -> Iterator[str]:
        """Yield the choice and its reason as lines of text."""
        yield f"layout: {self.layout}, padding: {self.padding}"
        for name, reason in self.absent.items():
            yield f"{name} is not possible: {reason}"
        for case, lead in self.leads.items():
            slower = ", slower beyond the noise" if lead.is_surely_slower else ""
            yield f"{case}: {self.layout} answers {lead} as fast as the other layout{slower}"
        if self.padding_lead is not None:
            yield f"padding to buckets answers mixed lengths of several clients {self.padding_lead} as fast as none"
        if self.leads or self.padding_lead is not None:
            yield f"measured in turns on {self.gpu or self.cpu}, {lists.counted(self.threads, 'thread')}"


def chosen(layouts: Mapping[str, TimedLayout]) -> tuple[str, dict[str, Lead]]:
    """Return the layout to keep, and its lead over the other one in each case; the first of `layouts` is the default.

    The kept one is that of the least regret (`least_regret`): its worst case is the least bad.
    """
    default = next(iter(layouts))
    name = least_regret(layouts, default)
    leads: dict[str, Lead] = {}
    for other, timed in layouts.items():
        if other != name:
            cases = [in_words(each.shape) for each in timed.latencies]
            leads |= zip(cases, leads_by_case(layouts[name], timed), strict=True)
    return name, leads


def in_words(case: Mapping[str, int]) -> str:
    """Return a measured case as text: "batch 1 x sequence 16, 8 clients"."""
    sizes = {axis: extent for axis, extent in case.items() if axis != CLIENTS}
    lengths = sizes.get(LENGTHS)
    texts = bench_report.in_words(sizes) if lengths is None else f"texts of {lists.counted(lengths, 'length')}"
    return f"{texts}, {lists.counted(case[CLIENTS], 'client')}"


def write(directory: Path, layout: str, padding: str) -> None:
    """Write the names of the chosen layout and padding beside the model in `directory`."""
    (directory / _FILE).write_text(json.dumps({_LAYOUT: layout, _PADDING: padding}) + "\n", "utf-8")


def read(directory: Path) -> tuple[str, str]:
    """Return the layout and the padding that were chosen for a model. Raises StepError where no file says it."""
    path = directory / _FILE
    try:
        chosen = json.loads(regular.read(path))
        return str(chosen[_LAYOUT]), str(chosen[_PADDING])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StepError(f"nothing says which layout was chosen: {_FILE} cannot be read", [f"{path}: {error}"]) from None


def leads_by_case(candidate: Timed, over: Timed) -> tuple[Lead, ...]:
    """Return for each case how many times faster `candidate` is: the median of the rounds' ratios."""
    pairs = zip(candidate.latencies, over.latencies, strict=True)
    return tuple(Lead.of_rounds(mine.faster(theirs)) for mine, theirs in pairs)


def regret(candidate: Timed, others: Mapping[str, Timed]) -> float:
    """Return how many times slower a candidate is than another one in the case that is worst for it; 1 for never.

    Only what lies beyond the noise counts: a case where the whole confidence interval of the other's lead is above 1.
    """
    worst = [lead.ratio for other in others.values() for lead in leads_by_case(other, candidate) if lead.is_sure]
    return max(worst, default=1.0)


def least_regret(candidates: Mapping[str, Timed], default: str) -> str:
    """Return the name of the candidate whose worst case is the least bad; the default where another is no better.

    So a candidate that is never slower beyond the noise is kept before one that sometimes is. Where each of them is
    sometimes slower, users of the kept one lose as little as possible, whichever case is theirs.
    """
    regrets = {
        name: regret(each, {other: timed for other, timed in candidates.items() if other != name})
        for name, each in candidates.items()
    }
    best = min(regrets.values())
    return default if regrets[default] <= best else min(regrets, key=lambda name: regrets[name])
