"""What waits for other hardware: the jobs of recipes by the machines that can run them, with a command for each."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder.lookup import Lookup
from engine.builder.variant import PlannedVariant
from engine.builder.why import Finding, numbered_twins
from engine.runtimes import requirements

if TYPE_CHECKING:
    from engine.builder.selection import Selection
    from engine.step import Hardware


@dataclass(frozen=True)
class WaitingJob:
    """A job that waits for hardware which this machine lacks."""

    path: Path
    """The recipe's file, as the user named it."""
    finding: Finding
    repeats: bool = False
    """Whether a job before this one in the list is the same work, so that its seconds count once."""

    @property
    def seconds(self) -> float | None:
        """The seconds that the job took in an earlier build; None if no build measured them."""
        return None if self.finding.cost is None else self.finding.cost.seconds


@dataclass(frozen=True)
class MachineNeeded:
    """A kind of machine, the jobs that wait for it, and the command that runs them there.

    `hardware` has the libraries that any of the jobs needs.
    """

    hardware: Hardware
    jobs: tuple[WaitingJob, ...]
    command: str

    @property
    def requirement(self) -> str:
        """What pip installs there for the jobs, quoted for shells."""
        return " ".join(requirements.to_install(self.hardware))

    @property
    def seconds(self) -> float | None:
        """The sum of the seconds of all jobs; None as soon as the seconds of one job are unknown."""
        each = [job.seconds for job in self.jobs if not job.repeats]
        known = [seconds for seconds in each if seconds is not None]
        return sum(known) if len(known) == len(each) else None


def by_machine(
    variants: Sequence[PlannedVariant], findings: Sequence[Finding], lookup: Lookup, selection: Selection
) -> tuple[MachineNeeded, ...]:
    """Return what waits, by the machine that it waits for, in the order of the plans.

    A job whose inputs are not built yet waits, too: nothing that this machine can build makes it run here.
    """
    paths = {variant.name: variant.loaded.path for variant in variants}
    numbers = numbered_twins(findings)
    counted: set[int] = set()
    needs = [None if finding.state == "cached" else lookup.waits_for(finding.job) for finding in findings]
    kinds = {each.model_copy(update={"libraries": None}) for each in needs if each is not None}
    waiting: dict[Hardware, list[WaitingJob]] = {}  # by the hardware without libraries, which pip adds to any machine
    richest: dict[Hardware, Hardware] = {}
    for finding, waits_for in zip(findings, needs, strict=True):
        if waits_for is not None:
            number = numbers[finding.job.recipe, finding.job.name]
            job = WaitingJob(paths[finding.job.recipe], finding, repeats=number in counted)
            counted.add(number)
            own = waits_for.model_copy(update={"libraries": None})
            # A machine with the packages of several runtimes runs the jobs of each of them, too.
            kind = max((each for each in kinds if {*own.each} <= {*each.each}), key=lambda each: len(each.each))
            waiting.setdefault(kind, []).append(job)
            whole = kind.model_copy(update={"libraries": waits_for.libraries})
            richest[kind] = whole if waits_for.libraries else richest.get(kind, whole)
    files = {hardware: {job.path for job in jobs} for hardware, jobs in waiting.items()}
    machines = []
    for kind, jobs in waiting.items():
        # A recipe with jobs for this machine may have other jobs, which still wait after those are built.
        rest_waits = any(files[kind] & other for each, other in files.items() if each != kind)
        command = _command(selection, files[kind], rest_waits=rest_waits)
        machines.append(MachineNeeded(richest[kind], tuple(jobs), command))
    return tuple(machines)


def _command(selection: Selection, paths: set[Path], *, rest_waits: bool) -> str:
    """Return the command line that builds the recipes in `paths` as this selection does, quoted for a shell."""
    words = ["recipe", "build", *(str(path) for path in selection.paths if path in paths)]
    for option, values in (
        ("--set", selection.set),
        ("--only", selection.only),
        ("--allow-path", selection.allow),
        ("--to", selection.to),
        ("--cache", (selection.cache,) if selection.cache is not None else ()),
    ):
        words += [word for value in values for word in (option, str(value))]
    for option, is_chosen in (
        ("--locked", selection.locked),
        ("--frozen", selection.frozen),
        ("--refresh", selection.refresh),
        ("--paranoid", selection.paranoid),
        ("--allow-waiting", rest_waits),
    ):
        words += [option] if is_chosen else []
    return shlex.join(words)
