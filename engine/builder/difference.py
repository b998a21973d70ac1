"""Difference: which jobs of two sides differ and why, and how their sizes, accuracies and latencies differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from engine.builder.diff_sides import Side, SideJob, SideVariant
from engine.builder.summary import html_table
from engine.key import Change, changes, input_row
from engine.kit.bench.report import NOT_COMPARABLE
from engine.store.history import HeadlineFigures, MeasuredLatency

STARTS = ("load s", "first call ms", "peak memory MiB")
"""The figures of one start of the model: a single measurement, whose difference proves nothing."""


class JobChange(Enum):
    """How a job differs between two sides."""

    SAME = "same"
    CHANGED = "changed"
    """Rows of the job's own differ: options, code, tools, sources."""
    FOLLOWS = "follows"
    """An input that another job makes has another content."""
    MAY_FOLLOW = "may follow"
    """An earlier job differs and has not run yet, so its output may be the same."""
    ADDED = "added"
    REMOVED = "removed"
    UNKNOWN = "unknown"
    """The key cannot be computed on one side."""


@dataclass(frozen=True)
class JobDifference:
    """A job on both sides."""

    job: str
    change: JobChange
    rows: tuple[Change, ...] = ()
    """The rows of the job's own that differ."""
    is_stored: bool = True
    """Whether the second side has the job's record already, so that a build runs nothing."""
    seconds: float | None = None
    error: str = ""
    waits_for: str = ""


@dataclass(frozen=True)
class Amount:
    """A figure on both sides; None where it is not measured."""

    name: str
    old: float | None
    new: float | None


@dataclass(frozen=True)
class VariantDifference:
    """A variant on both sides; one of them may lack it."""

    old: SideVariant | None
    new: SideVariant | None
    jobs: tuple[JobDifference, ...]
    amounts: tuple[Amount, ...]
    """Size and accuracy."""
    latencies: tuple[LatencyChange, ...]

    @property
    def name(self) -> str:
        """The name of the variant, or both names where the sides have different ones."""
        names = dict.fromkeys(side.name for side in (self.old, self.new) if side is not None)
        return " -> ".join(names)

    @property
    def differing(self) -> tuple[JobDifference, ...]:
        """The jobs that differ."""
        return tuple(job for job in self.jobs if job.change is not JobChange.SAME)

    @property
    def to_build(self) -> tuple[JobDifference, ...]:
        """The jobs that a build of the second side would run."""
        return tuple(job for job in self.jobs if job.change is not JobChange.REMOVED and not job.is_stored)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that measured the latencies, one if both sides have the same."""
        sides = (side.figures.device for side in (self.old, self.new) if side is not None)
        return tuple(dict.fromkeys(device for device in sides if device))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What stands beside the figures of each side."""
        sides = (("before", self.old), ("after", self.new))
        return tuple(f"{name}: {each}" for name, side in sides if side is not None for each in side.figures.warnings)

    @property
    def is_none(self) -> bool:
        """Whether nothing differs, and nothing is to be built."""
        return self.old is not None and self.new is not None and not self.differing and not self.to_build


@dataclass(frozen=True)
class SideComparison:
    """Two sides, variant by variant."""

    old: str
    new: str
    variants: tuple[VariantDifference, ...]

    def __repr__(self) -> str:
        """Return both sides, and how many variants differ."""
        differing = sum(not each.is_none for each in self.variants)
        return f"<SideComparison {self.old} -> {self.new}: {differing} of {len(self.variants)} variants differ>"

    def _repr_html_(self) -> str:
        """Return the jobs and the latencies that differ as a table, which a notebook shows."""
        rows = [
            (
                each.name,
                ", ".join(f"{job.job} {job.change.value}" for job in each.differing),
                ", ".join(job.job for job in each.to_build),
                "; ".join(f"{change.new.place}: {change.in_words()}" for change in each.latencies),
                "; ".join(each.warnings),
            )
            for each in self.variants
        ]
        return html_table(repr(self)[1:-1], ("variant", "differs", "to build", "p50", "warnings"), rows)


def of(old: Side, new: Side) -> SideComparison:
    """Compare two sides. Variants are paired by name, then by their values of the matrix; two single ones always."""
    return SideComparison(old.title, new.title, tuple(_variant(*pair) for pair in _pairs(old, new)))


def _pairs(old: Side, new: Side) -> Iterator[tuple[SideVariant | None, SideVariant | None]]:
    if len(old.variants) == len(new.variants) == 1:
        yield old.variants[0], new.variants[0]
        return
    left = {each.name: each for each in old.variants}
    labels = {each.label: each.name for each in old.variants if each.label}
    for each in new.variants:
        before = left.pop(each.name, None) or left.pop(labels.get(each.label, ""), None)
        yield before, each
    yield from ((each, None) for each in left.values())


def _variant(old: SideVariant | None, new: SideVariant | None) -> VariantDifference:
    jobs = _jobs({} if old is None else old.jobs, {} if new is None else new.jobs)
    latencies = [] if old is None or new is None else latency_changes(old.figures, new.figures)
    return VariantDifference(old, new, tuple(jobs), tuple(_amounts(old, new)), tuple(latencies))


def _jobs(old: Mapping[str, SideJob], new: Mapping[str, SideJob]) -> Iterator[JobDifference]:
    changed: dict[str, JobChange] = {}
    for name, job in new.items():
        before = old.get(name)
        rows = () if before is None else _own_rows(before, job)
        changed[name] = JobChange.ADDED if before is None else _change(before, job, rows, changed)
        yield _difference(name, changed[name], job, rows)
    yield from (_difference(name, JobChange.REMOVED, job) for name, job in old.items() if name not in new)


def _difference(name: str, change: JobChange, job: SideJob, rows: tuple[Change, ...] = ()) -> JobDifference:
    return JobDifference(name, change, rows, job.is_stored, job.seconds, job.error, job.waits_for)


def _outputs(job: SideJob) -> dict[str, str | None]:
    """Return the rows of a job's key for what earlier jobs made; None for one that is not known yet."""
    return {row: (job.key or {}).get(row) for row in map(input_row, job.needs)}


def _own_rows(old: SideJob, new: SideJob) -> tuple[Change, ...]:
    """Return the rows that differ, except the outputs of earlier jobs; a row for another wiring counts."""
    if old.key is None or new.key is None:
        return ()
    outputs = _outputs(old).keys() & _outputs(new).keys()
    return tuple(each for each in changes(old.key, new.key) if each.row not in outputs)


def _change(old: SideJob, new: SideJob, rows: tuple[Change, ...], earlier: Mapping[str, JobChange]) -> JobChange:
    if old.key is None or new.key is None:
        return JobChange.UNKNOWN
    if rows:
        return JobChange.CHANGED
    before, after = _outputs(old), _outputs(new)
    if None not in (*before.values(), *after.values()):
        return JobChange.SAME if before == after else JobChange.FOLLOWS
    makers = (earlier.get(maker, JobChange.SAME) for maker in new.needs.values())
    moved = any(change is not JobChange.SAME for change in makers) or old.needs != new.needs
    return JobChange.MAY_FOLLOW if moved else JobChange.SAME


def _amounts(old: SideVariant | None, new: SideVariant | None) -> Iterator[Amount]:
    names = dict.fromkeys(name for side in (old, new) if side is not None for name in _figures(side))
    for name in names:
        yield Amount(name, *(None if side is None else _figures(side).get(name) for side in (old, new)))


def _figures(side: SideVariant) -> dict[str, float]:
    figures = side.figures
    named = {
        "size": figures.size,
        "cosine": figures.cosine,
        "worst cosine": figures.worst_cosine,
        "agreement": figures.agreement,
        **figures.metrics,
        **dict(zip(STARTS, (figures.load_s, figures.first_ms, figures.peak_mib), strict=True)),
    }
    return {name: value for name, value in named.items() if value is not None}


class LatencyVerdict(Enum):
    """What two latencies say about each other."""

    FASTER = "faster"
    SLOWER = "slower"
    WITHIN_NOISE = "within noise"
    """The confidence intervals of both latencies overlap."""
    NOT_COMPARABLE = NOT_COMPARABLE
    """The machine was busy while one of the two was measured."""


@dataclass(frozen=True)
class LatencyChange:
    """Two medians of one shape and way of calling."""

    old: MeasuredLatency
    new: MeasuredLatency

    @property
    def ratio(self) -> float:
        """The new median as a multiple of the old one."""
        return self.new.p50_ms / self.old.p50_ms if self.old.p50_ms else 1.0

    @property
    def band(self) -> tuple[float, float]:
        """The least and the greatest ratio that both confidence intervals allow."""
        (low, high), (old_low, old_high) = self.new.interval, self.old.interval
        return (low / old_high if old_high else 1.0, high / old_low if old_low else 1.0)

    @property
    def verdict(self) -> LatencyVerdict:
        """The verdict: faster or slower only if the two confidence intervals have no value in common."""
        if self.old.busy or self.new.busy:
            return LatencyVerdict.NOT_COMPARABLE
        low, high = self.band
        if low <= 1 <= high:
            return LatencyVerdict.WITHIN_NOISE
        return LatencyVerdict.FASTER if high < 1 else LatencyVerdict.SLOWER

    def in_words(self) -> str:
        """Return the change in percent with its band: "-12.4% (-15.0 to -9.1%)", or why there is none."""
        if self.verdict is LatencyVerdict.NOT_COMPARABLE:
            return "busy: no verdict"
        low, high = self.band
        head = self.verdict.value if self.verdict is LatencyVerdict.WITHIN_NOISE else f"{self.ratio - 1:+.1%}"
        return f"{head} ({low - 1:+.1%} to {high - 1:+.1%})"


def latency_changes(old: HeadlineFigures, new: HeadlineFigures) -> list[LatencyChange]:
    """Return the change of each latency that both builds have, in the order of the new build."""
    pairs = ((old.latency(each.place), each) for each in new.latencies)
    return [LatencyChange(before, after) for before, after in pairs if before is not None]
