"""Choice report: the runtime that a build keeps, the figures that decided it, and why the others were rejected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from engine.kit.accuracy.report import Worst
from engine.kit.bench.stats import Lead
from engine.reporting import TypedReport
from engine.text import lists


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A candidate beside the others: its figures, and why it was rejected if it was."""

    p50_ms: tuple[float, ...]
    """The median latency at each shape of the report; empty for a model that cannot be built."""
    lead: Lead | None = None
    """How many times faster it is than `default`; None for `default` itself, and for a model that does not validate."""
    cosine: Worst | None = None
    rejected: tuple[str, ...] = ()
    """The missed bound and its details, or why it cannot be built; empty for a model that validates."""

    def in_words(self) -> str:
        """Return the accuracy of the candidate as text, or the bound that it misses."""
        if self.rejected:
            return f"{'does not validate' if self.p50_ms else 'cannot be built'}: {self.rejected[0]}"
        return "" if self.cosine is None else f"cosine mean {self.cosine.mean:.4f}, worst {self.cosine.worst:.4f}"


@dataclass(frozen=True, kw_only=True)
class ChoiceReport(TypedReport):
    """The choice among the candidates, which are in the order of the recipe's runtime."""

    runtime: str | None
    """The name of the chosen runtime; None where no model validates."""
    default: str | None
    """The candidate that is kept where no other is measurably faster: the first that validates."""
    cpu: str
    threads: int
    gpu: str = ""
    """The GPU that ran the models; empty where the CPU ran them."""
    shapes: tuple[Mapping[str, int], ...]
    order: tuple[str, ...]
    candidates: Mapping[str, Compared] = field(default_factory=dict)

    def headline(self, named: str) -> str:
        """Return the choice and its figures in a line; `named` is the runtime's name in the recipe."""
        if self.runtime is None or self.default is None:
            return f"{named}: no candidate validates"
        chosen = self.candidates[self.runtime]
        parts = [f"{named} -> {self.runtime}"]
        if chosen.lead is not None:
            low, high = chosen.lead.interval
            parts.append(f"{chosen.lead.ratio:.2f} x faster than {self.default} [{low:.2f}, {high:.2f}]")
        return ", ".join(filter(None, (*parts, chosen.in_words())))

    def lines(self) -> Iterator[str]:
        """Yield a line for each candidate that was not chosen, with the reason, and a line about the measurement."""
        for name in self.order:
            if name != self.runtime:
                yield f"rejected {name}: {self._reason(name)}"
        shapes = lists.counted(len(self.shapes), "shape")
        device = self.gpu or f"{self.cpu}, {lists.counted(self.threads, 'thread')}"
        yield f"measured interleaved at {shapes} on {device}"

    def _reason(self, name: str) -> str:
        each = self.candidates[name]
        if each.rejected:
            return each.in_words()
        if each.lead is None:
            return "; ".join(filter(None, (f"slower than {self.runtime}", each.in_words())))
        low, high = each.lead.interval
        why = f"within the noise of {self.default}" if low <= 1 <= high else f"slower than {self.runtime}"
        return "; ".join(filter(None, (f"{why}: {each.lead} the speed of {self.default}", each.in_words())))
