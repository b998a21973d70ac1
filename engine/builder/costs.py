"""What a rebuild will cost: seconds by the last run of each job, the time with N slots, and what an upgrade causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.builder.findings import Finding
from engine.builder.job import Job
from engine.builder.states import urgencies
from engine.step import Section
from engine.text import distribution, lists


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
