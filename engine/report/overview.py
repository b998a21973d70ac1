"""Overview: a few values of each variant, for tables with a row each: its state, its figures, and those of before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from engine.builder.difference import LatencyChange
from engine.builder.lookup import Lookup
from engine.builder.summary import Summary
from engine.builder.why import Finding
from engine.store import history
from engine.store.history import HeadlineFigures, PastBuild
from engine.text import lists


@dataclass(frozen=True)
class VariantOverview:
    """The state of a variant, the figures of its last build, and what changed since the build before."""

    name: str
    label: str
    """The variant's values of the matrix, as text; empty without a matrix."""
    precision: str
    device: str
    state: str
    """`up to date`, `not built`, `3 of 9 jobs to build` or `waits for T4 ...`."""
    figures: HeadlineFigures
    builds: Sequence[PastBuild] = ()
    """The variant's noted builds, the oldest first."""

    @property
    def change(self) -> LatencyChange | None:
        """The first latency of the last build, against the build before that measured it, too; None without one."""
        latest = self.figures.latencies[:1]
        for build in reversed(self.builds):
            before = build.figures.latency(latest[0].place) if latest else None
            if before is not None and before != latest[0]:
                return LatencyChange(before, latest[0])
        return None


def of(lookup: Lookup, summaries: Iterable[Summary], findings: Iterable[Finding]) -> Iterator[VariantOverview]:
    """Yield the overview of each variant; `findings` are those of all variants, in the same order."""
    by_name = {name: list(own) for name, own in groupby(findings, key=lambda finding: finding.job.recipe)}
    for summary in summaries:
        variant = summary.variant
        yield VariantOverview(
            name=variant.name,
            label=variant.loaded.variant,
            precision=summary.precision,
            device=", ".join(summary.devices),
            state=state_of(by_name.get(variant.name, [])),
            figures=summary.headline,
            builds=history.of(lookup.store.notes, variant.subject),
        )


def state_of(findings: Sequence[Finding]) -> str:
    """Return the state of a variant, by the findings about its jobs."""
    missing = [finding for finding in findings if finding.state != "cached"]
    error = next((finding.error for finding in findings if finding.error is not None), None)
    away = next((finding.waits_for for finding in missing if finding.waits_for is not None), None)
    if error is not None:
        return f"error: {error.what}"
    if not missing:
        return "up to date"
    if away is not None:
        return f"waits for {away}"
    if all(finding.state in ("new", "unknown") for finding in findings):
        return "not built"
    return f"{len(missing)} of {lists.counted(len(findings), 'job')} to build"
