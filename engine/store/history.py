"""History: what the builds of each variant did, the newest last, as a note that outlives the records of old builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from engine import digest
from engine.digest import Digest
from engine.key import Change
from engine.reporting import TypedReport
from engine.store.heads import Heads, Subject
from engine.store.notes import Notes

KIND = "history"
_BUILDS = "builds"
KEPT = 100
"""The number of builds of a variant that the history keeps."""


@dataclass(frozen=True, kw_only=True)
class MeasuredLatency:
    """The latency of the built model at one shape and way of calling, in milliseconds."""

    place: str
    """The shape and the way of calling, as text: "batch 1 x sequence 16 via triton-grpc"."""
    p50_ms: float
    interval: tuple[float, float]
    """The 95 % confidence interval of `p50_ms`; from the value to itself where it is not known."""
    p95_ms: float | None = None
    busy: bool = False
    """Whether the machine was busy meanwhile, so that the latency is compared with no other."""
    paused_ms: float | None = None
    """The median of calls after a pause; None where it was not measured."""
    rows_per_s: float | None = None
    """Rows of a batch per second by `p50_ms`; None where the shape names no batch."""


@dataclass(frozen=True, kw_only=True)
class HeadlineFigures(TypedReport):
    """The few figures of a built variant by which people compare builds."""

    size: int | None = None
    """The size of the model in bytes."""
    cosine: float | None = None
    """The mean cosine of the outputs with the original's."""
    worst_cosine: float | None = None
    agreement: float | None = None
    """The share of equal choices, from 0 to 1."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The name of each further measure of accuracy, such as "accuracy" -> its value."""
    latencies: tuple[MeasuredLatency, ...] = ()
    load_s: float | None = None
    """The seconds in which a process of its own loaded the model; None where that was not measured, as below."""
    first_ms: float | None = None
    """The milliseconds of the first call."""
    peak_mib: float | None = None
    """The peak of the memory of the model in its process, in MiB."""
    device: str = ""
    """What ran the measured model: the GPU, or the CPU and its threads."""
    warnings: tuple[str, ...] = ()
    """What stands beside the figures wherever they are shown."""

    def latency(self, place: str) -> MeasuredLatency | None:
        """Return the latency at a place; None where it was not measured there."""
        return next((each for each in self.latencies if each.place == place), None)


@dataclass(frozen=True)
class JobRun:
    """A job that a build ran."""

    job: str
    state: str
    """`built` or `failed`."""
    seconds: float
    changes: tuple[Change, ...] = ()
    """The rows in which the job's key differs from its last key, except the outputs of earlier jobs."""
    error: str = ""


@dataclass(frozen=True)
class PastBuild(TypedReport):
    """What one build did for a variant."""

    at: float
    """The end of the build, in seconds since the epoch."""
    name: str
    """The variant's name at that time."""
    state: str
    jobs: Mapping[str, Digest]
    """The key of each job that had a record at the end of the build."""
    runs: tuple[JobRun, ...] = ()
    figures: HeadlineFigures = HeadlineFigures()
    compared_with: str = ""
    """The recipe file whose last build the rows of the runs are compared with, if it is another."""

    def __repr__(self) -> str:
        """Return the time, the state and the jobs that ran."""
        ran = ", ".join(f"{run.job} {run.state}" for run in self.runs) or "no job ran"
        return f"<PastBuild {self.name} at {datetime.fromtimestamp(self.at, UTC):%Y-%m-%d %H:%M} UTC: {ran}>"

    @property
    def seconds(self) -> float:
        """The sum of the durations of the jobs that ran."""
        return sum(run.seconds for run in self.runs)

    def repeats(self, other: PastBuild) -> bool:
        """Say whether this build gave what the other one gave: no job was built, and the same one failed."""
        failed = [(run.job, run.error) for run in other.runs if run.state == "failed"]
        mine = [(run.job, run.error) for run in self.runs]
        return mine == failed and self.jobs == other.jobs and self.state == other.state


def of(notes: Notes, subject: Subject) -> list[PastBuild]:
    """Return the builds of a variant, the oldest first. A build that this version cannot read is left out."""
    return _read(notes.get(KIND, _name_of(notes, subject)).get(_BUILDS))


def _read(raw: object) -> list[PastBuild]:
    builds = []
    for each in raw if isinstance(raw, Sequence) else ():
        with suppress(ValueError):
            builds.append(PastBuild.from_json(each))
    return builds


def add(notes: Notes, subject: Subject, build: PastBuild) -> None:
    """Put a build at the end of the history of a variant, unless it repeats the last one."""
    name = _name_of(notes, subject)
    raw = notes.get(KIND, name).get(_BUILDS)
    kept = list(raw) if isinstance(raw, list) else []
    last = _read(kept[-1:])
    if last and build.repeats(last[0]):
        return
    notes.keep(KIND, name, {_BUILDS: [*kept, build.to_json()][-KEPT:]})


def _name_of(notes: Notes, subject: Subject) -> str:
    """Return the name of a variant's note: of the recipe file, as the heads name it, and of the variant."""
    file = Heads(notes).path(subject).stem
    return digest.of_bytes(f"{file} {subject.variant}".encode("utf-8", "surrogateescape"))
