"""Explain each job for `recipe why`, for example that it is cached, or which rows of its key changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from engine.builder.job import Job, current_report, report_version
from engine.builder.lookup import Lookup, content_of
from engine.builder.states import urgencies
from engine.builder.variant import PlannedVariant
from engine.errors import UserError
from engine.key import CODE, Change, Key, changes, digest_of, is_input
from engine.step import Section
from engine.store.heads import Head
from engine.store.record import Record
from engine.text import distribution, lists

State = Literal["cached", "stale", "new", "unknown"]


@dataclass(frozen=True)
class Cost:
    """The duration of a job's last run, which the next run will take, too, as far as one can tell."""

    seconds: float
    machine: str = ""
    """The GPU or the CPU of the run, if it was another machine's; else empty."""


@dataclass(frozen=True)
class Finding:
    """The state of a job for `recipe why`, and the rows of the key that explain the state."""

    job: Job
    state: State
    changes: tuple[Change, ...] = ()
    key: Key | None = None
    """The job's key, with the rows of all inputs that are known; None if it cannot be computed."""
    record: Record | None = None
    error: UserError | None = None
    cost: Cost | None = None
    """What a run of the job will cost; None for a cached job, and for a job about whose duration nothing is known."""
    waits_for: str | None = None
    """The hardware that the job needs and this machine lacks, if the job is not cached; else None."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """For each row of a tool that has a digest of the tool's code, why the version of the tool is not enough.

    For the row `code`, which version of this program made the last result, if it was another one.
    """
    compared_with: str = ""
    """The recipe file whose last build the changes are compared with, if it is another than the job's recipe."""
    maker_version: str | None = None
    """The version of this program that made the last result of a job that is not cached; None without a last result.

    The version is "" for a result of a version that did not say so.
    """

    def __repr__(self) -> str:
        """Return the names of the variant and the job, the job's state, and the rows that changed."""
        rows = f" ({', '.join(change.row for change in self.changes)})" if self.changes else ""
        return f"<Finding {self.job.recipe} {self.job.name}: {self.state}{rows}>"

    @property
    def is_upgrade(self) -> bool:
        """Whether the job runs again only because another version of this program made its last result."""
        known = [change for change in self.changes if not is_input(change.row) or change.new is not None]
        return [change.row for change in known] == [CODE] and self._is_of_another_version

    @property
    def _is_of_another_version(self) -> bool:
        return self.maker_version not in (None, distribution.version())

    def explained(self, reasons: Mapping[str, str]) -> Finding:
        """Return the finding with the reasons of its rows."""
        if self._is_of_another_version:
            reason = f"made by {distribution.earlier(self.maker_version or '')}; this is {distribution.running()}"
            reasons = {**reasons, CODE: reason}
        return replace(self, reasons=reasons)


def examine(variant: PlannedVariant, lookup: Lookup) -> list[Finding]:
    """Return for each job of a variant whether it is cached, and if not, the rows that changed."""
    head, other = lookup.heads.before(variant.subject)
    recipe = changes(dict(head.recipe), dict(variant.subject.fields)) if head.recipe else ()
    findings: dict[str, Finding] = {}
    for job in variant.jobs:
        finding = _examine(job, findings, head, lookup, recipe)
        findings[job.name] = finding if finding.state == "cached" else _with_cost(finding, head, other, lookup)
    reasons = {f"tools.{name}": reason for name, reason in lookup.rows.reasons.items()}
    return [finding.explained(reasons) for finding in findings.values()]


def _examine(job: Job, earlier: Mapping[str, Finding], head: Head, lookup: Lookup, recipe: Sequence[Change]) -> Finding:
    known = {name: earlier[maker].record for name, maker in job.needs.items()}
    makers = {name: earlier[maker].job for name, maker in job.needs.items()}
    inputs = {name: content_of(makers[name], record) for name, record in known.items() if record is not None}
    try:
        key = lookup.key(job, inputs)
    except UserError as error:
        return Finding(job, "unknown", error=error)
    missing = [name for name, record in known.items() if record is None]
    record = None if missing else lookup.find(job, key)
    if record is not None:
        return Finding(job, "cached", key=record.key, record=record)
    last = head.jobs.get(job.name)
    before = lookup.store.read(last.key) if last and last.key else None
    if not missing and last and last.key == digest_of(key):
        return Finding(job, "stale", (_lost(job, before),), key=key)
    rewired = tuple(recipe) if last is None or last.needs != dict(job.needs) else ()
    waits_for = lookup.waits_for(job)
    if before is None:
        nearest = () if waits_for is None else lookup.other_machines.nearest(job.name, key, waits_for)
        return Finding(job, "unknown" if missing else "new", (*nearest, *rewired), key)
    rows = changes(before.key, key) if waits_for is None else lookup.other_machines.differences(before, key, waits_for)
    return Finding(job, "unknown" if missing else "stale", (*rows, *rewired), key, maker_version=before.maker_version)


def _with_cost(finding: Finding, head: Head, other: str, lookup: Lookup) -> Finding:
    """Return a finding with the cost of the job's last run, which the record or, without a record, the head tells.

    `other` is the recipe file that the head is of, if it is another.
    """
    last, waits_for = head.jobs.get(finding.job.name), lookup.waits_for(finding.job)
    record = lookup.store.read(last.key) if last and last.key else None
    cost = Cost(last.seconds) if last and last.seconds is not None else None
    if record is not None:
        cost = Cost(record.seconds, _machine_of(record, lookup.rows.machine))
    return replace(finding, cost=cost, compared_with=other, waits_for=None if waits_for is None else str(waits_for))


def _machine_of(record: Record, here: Mapping[str, str]) -> str:
    """Return the GPU or else the CPU of the machine that made a record, if this machine has another one; else ""."""
    models = (record.machine.get(fact, "") for fact in ("gpu.name", "cpu.model"))
    return next((model for model in models if model not in ("", "none", *here.values())), "")


def _lost(job: Job, before: Record | None) -> Change:
    """Return why a job with an unchanged key runs again, as a Change: its record or artifact is missing or damaged."""
    if before is None:
        return Change("record", "stored", "missing or damaged")
    if current_report(type(job.step), before) is None:
        known = report_version(type(job.step))
        return Change("report", f"version {before.report_version}", f"cannot be read as version {known}")
    if job.hermetic and not before.trace:
        return Change("trace", "none", "needed, because the recipe is hermetic")
    return Change("artifact", str(before.artifact), "missing or damaged")


@dataclass(frozen=True)
class Total:
    """The cost of all jobs that a build would run, as far as earlier runs tell."""

    seconds: float
    """The sum of the seconds of all jobs."""
    elapsed: float
    """The least time of the build, if `parallel` jobs may run at once.

    It follows from the longest chain and from the sum of the jobs. No other job runs beside one that measures time.
    """
    parallel: int
    unknown: int
    """The number of jobs about whose duration the store knows nothing."""
    waiting: int
    """The number of jobs that wait for hardware of another machine; their seconds do not count."""


def total(findings: Sequence[Finding], parallel: int) -> Total | None:
    """Return the cost of all jobs that are not cached; None if all are cached. Equal jobs of variants count once."""
    twins = numbered_twins(findings)
    first = {twins[finding.job.recipe, finding.job.name]: finding for finding in reversed(findings)}
    due = {twin: finding for twin, finding in reversed(first.items()) if finding.state != "cached"}
    if not due:
        return None
    here = {twin: finding for twin, finding in due.items() if finding.waits_for is None}
    seconds = {twin: finding.cost.seconds for twin, finding in here.items() if finding.cost is not None}
    needs = [
        (twin, [each for name in finding.job.earlier if (each := twins[finding.job.recipe, name]) in here])
        for twin, finding in here.items()
    ]
    beside = {twin: 0.0 if here[twin].job.traits.exclusive else seconds.get(twin, 0.0) for twin in here}
    longest = max(urgencies(needs, beside).values(), default=0.0)
    alone = sum(seconds.values()) - sum(beside.values())
    return Total(
        seconds=sum(seconds.values()),
        elapsed=alone + max(longest, sum(beside.values()) / parallel),
        parallel=parallel,
        unknown=len(here) - len(seconds),
        waiting=len(due) - len(here),
    )


def numbered_twins(findings: Sequence[Finding]) -> dict[tuple[str, str], int]:
    """Return a number for each job; jobs of several variants that are the same work have the same number."""
    numbers: dict[object, int] = {}
    twins: dict[tuple[str, str], int] = {}
    for finding in findings:
        job = finding.job
        twins[job.recipe, job.name] = numbers.setdefault(_work(job, twins), len(numbers))
    return twins


def _work(job: Job, twins: Mapping[tuple[str, str], int]) -> object:
    """Return what makes two jobs the same work: the step, its options, and the jobs whose outputs it reads."""
    traits = job.traits
    read = tuple((name, twins[job.recipe, maker]) for name, maker in job.needs.items())
    return traits.kind, repr(sorted(traits.options.items())), tuple(sorted(traits.sources.items())), read


@dataclass(frozen=True)
class Upgrade:
    """The jobs that run again because of an upgrade; equal jobs of variants count once."""

    versions: tuple[str, ...]
    """The versions of this program that made the last results; "" for a version that did not say so."""
    jobs: int
    engines: int
    """How many of the jobs compile a TensorRT engine."""
    gpus: tuple[str, ...]
    """The GPUs of these engines, by their names in the catalogue."""

    def __str__(self) -> str:
        before = " and ".join(map(distribution.earlier, self.versions))
        gpus = f" ({', '.join(self.gpus)})" if self.gpus else ""
        engines = f", of these {lists.counted(self.engines, 'TensorRT engine')}{gpus}" if self.engines else ""
        again = f"{lists.counted(self.jobs, 'job')} would run again{engines}"
        return f"after the upgrade from {before} to {distribution.running()}: {again}"

    def fields(self) -> dict[str, object]:
        """Return the upgrade as JSON values; a version is null where it is not known."""
        return {
            "from": [version or None for version in self.versions],
            "to": distribution.version() or None,
            "jobs": self.jobs,
            "engines": self.engines,
            "gpus": list(self.gpus),
        }


def upgrade(findings: Sequence[Finding]) -> Upgrade | None:
    """Return what an upgrade makes run again; None if it makes nothing run again."""
    twins = numbered_twins(findings)
    again = {twins[each.job.recipe, each.job.name]: each for each in findings if each.is_upgrade}
    if not again:
        return None
    steps = [each.job.step for each in again.values()]
    hardware = [step.hardware() for step in steps if step.section is Section.ENGINE]
    gpus = dict.fromkeys(device.name for each in hardware if each is not None for device in each.devices)
    versions = {each.maker_version or "" for each in again.values()}
    return Upgrade(tuple(sorted(versions)), len(again), len(hardware), tuple(gpus))
