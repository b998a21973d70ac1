"""Events of a running build, from which the terminal output and the JSON output are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import Exit, UserError

JobState = Literal["cached", "built", "reproduced", "waiting", "failed", "skipped"]
Direction = Literal["in", "out"]
BuildState = Literal["built", "up to date", "waiting", "failed", "interrupted"]


@dataclass(frozen=True)
class Gap:
    """Something that a job read and that no row of its key covers: a change of it would make no job run again."""

    kind: str
    """`file`, `folder`, `package`, `machine`, `program` or `network`."""
    name: str
    at: str = ""
    """The file and line of the step's code that read it; empty for a read by native code."""
    hint: str = ""
    """How the step can declare it."""
    fails: bool = False
    """Whether the job fails: it read a file of its own package or of this program, which every key must cover."""


@dataclass(frozen=True)
class Noticed:
    """A notice for the user: about this machine or store, or, with `lasting`, about a recipe.

    A build in which nothing has changed repeats a lasting notice.
    """

    text: str
    lasting: bool = False
    is_warning: bool = False
    """Whether a quiet build prints the notice, too."""


@dataclass(frozen=True)
class Refused:
    """A recipe is wrong, and `--keep-going` builds the other recipes."""

    path: str
    error: UserError


@dataclass(frozen=True)
class Planned:
    """The plan of a recipe: its jobs in order, each with the jobs that it needs."""

    recipe: str
    jobs: tuple[tuple[str, tuple[str, ...]], ...]
    seconds: tuple[tuple[str, float], ...] = ()
    """How long jobs took when they ran last, as far as that is known; for people, who see what is left."""


@dataclass(frozen=True)
class Started:
    """The event that a job has started in a worker, which writes the job's log."""

    recipe: str
    job: str
    log: Path
    node: str = ""
    """The machine of a cluster that runs the job; "" for this machine."""


@dataclass(frozen=True)
class RunsElsewhere:
    """The event that another builder runs a job, so that this builder waits for the job's record."""

    recipe: str
    job: str
    builder: str
    """The other builder: its process, machine and start, as text."""
    pid: int | None = None
    host: str | None = None
    since: float | None = None
    """The time at which the other builder began, in seconds since the epoch."""

    @property
    def whom(self) -> str:
        """What the build waits for, as text."""
        return self.builder


@dataclass(frozen=True)
class Awaits:
    """The event that this build begins to wait for the result that another machine makes of a job."""

    recipe: str
    job: str
    waits_for: str
    """The hardware that the job needs and this machine lacks, as text."""
    advice: str = ""
    """What this machine has instead, and what to do."""

    @property
    def whom(self) -> str:
        """What the build waits for, as text."""
        return self.waits_for


@dataclass(frozen=True)
class Arrival:
    """The result of a job came from another machine while this build waited for it."""

    seconds: float
    """How long the build waited for the job."""
    machine: str
    """The GPU, or else the CPU, of the other machine."""


@dataclass(frozen=True)
class Moved:
    """The event that artifacts travel between this machine and the remote, about once a second while they do."""

    direction: Direction
    """`in` if they come from the remote, `out` if they go there."""
    remote: str
    jobs: tuple[str, ...]
    """The jobs whose artifacts are on their way; empty in the last event about them."""
    done: int
    """Bytes of their files that are there."""
    total: int
    """Bytes of all their files."""


@dataclass(frozen=True)
class Ended:
    """The event that a job has ended."""

    recipe: str
    job: str
    state: JobState
    seconds: float = 0.0
    key: str | None = None
    artifact: str | None = None
    path: Path | None = None
    waits_for: str | None = None
    """The hardware that the job needs and this machine lacks, as text."""
    advice: str = ""
    """What this machine has instead of the hardware in `waits_for`, and what to do."""
    error: UserError | None = None
    gaps: tuple[Gap, ...] = ()
    """What the job read without a row of its key, if the step belongs to another Python package."""
    arrival: Arrival | None = None
    """How the result came, if this build waited for another machine to make it."""
    measured_at: float | None = None
    """If a job failed by the stored report of an earlier run: the time of that run, in seconds since the epoch."""


@dataclass(frozen=True)
class BuildFailure:
    """A job that failed, or a recipe that is wrong, and the reason."""

    recipe: str
    """The name of the variant; of a recipe that is wrong, its path."""
    job: str
    """The failed job; "" for a recipe that is wrong."""
    step: str
    """The step of the failed job."""
    error: UserError
    log: Path | None = None
    """The log of the run that failed; None where no run is at fault."""

    def __repr__(self) -> str:
        """Return the recipe, the job and the error message."""
        return f"<BuildFailure {self.place}: {self.error.what}>"

    @property
    def place(self) -> str:
        """The recipe and the job."""
        return f"{self.recipe} {self.job}".rstrip()

    def fields(self) -> dict[str, object]:
        """Return the failure as a dictionary for JSON."""
        log = None if self.log is None else str(self.log)
        return {"recipe": self.recipe, "job": self.job, "step": self.step, "log": log, "error": self.error.fields()}


class BuildFailedError(UserError):
    """A build has failed; `failures` has the reason of each failed job."""

    def __init__(self, failures: Sequence[BuildFailure]) -> None:
        first = failures[0]
        if len(failures) == 1:
            log = () if first.log is None else (f"log: {first.log}",)
            super().__init__(f"{first.place} failed: {first.error.what}", (*first.error.facts, *log), first.error.hint)
        else:
            super().__init__(f"{len(failures)} jobs failed", [f"{each.place}: {each.error.what}" for each in failures])
        self.args = (tuple(failures),)  # unpickling calls the class with these arguments
        self.failures = tuple(failures)
        self.exit = Exit.worst([each.error.exit for each in failures])


@dataclass(frozen=True)
class Finished:
    """The build has ended; `packages` are the folders of the packages by recipe."""

    state: BuildState
    seconds: float
    exit: Exit
    packages: Mapping[str, Path]
    failures: tuple[BuildFailure, ...] = ()
    """Why the build failed: what `engine.build` returns has the reasons. In reports each job has its own event."""

    def __repr__(self) -> str:
        """Return the state, the duration, the packages and what failed."""
        packages = f": {', '.join(map(str, self.packages.values()))}" if self.packages else ""
        failed = f"; {'; '.join(f'{each.place}: {each.error.what}' for each in self.failures)}" if self.failures else ""
        return f"<Finished {self.state} in {self.seconds:.1f} s{packages}{failed}>"

    def raise_failures(self) -> None:
        """Raise BuildFailedError, with the reasons, if jobs have failed."""
        if self.failures:
            raise BuildFailedError(self.failures)


Event = Noticed | Refused | Planned | Started | RunsElsewhere | Awaits | Moved | Ended | Finished
