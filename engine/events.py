"""What a build tells while it runs: values that every report reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import Exit, UserError

JobState = Literal["cached", "built", "waiting", "failed", "skipped"]
BuildState = Literal["built", "up to date", "waiting", "failed", "interrupted"]


@dataclass(frozen=True)
class Noticed:
    """Something about this machine or store that the user should know."""

    text: str


@dataclass(frozen=True)
class Planned:
    """A recipe's jobs, in order: (job, the jobs it needs)."""

    recipe: str
    jobs: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Started:
    """A job began in a worker; its log is being written."""

    recipe: str
    job: str
    log: Path


@dataclass(frozen=True)
class Ended:
    """A job came to its end."""

    recipe: str
    job: str
    state: JobState
    seconds: float = 0.0
    key: str | None = None
    artifact: str | None = None
    path: Path | None = None
    waits_for: str | None = None
    error: UserError | None = None


@dataclass(frozen=True)
class Finished:
    """The build came to its end; `packages` are the folders made, by recipe."""

    state: BuildState
    seconds: float
    exit: Exit
    packages: Mapping[str, Path]


Event = Noticed | Planned | Started | Ended | Finished
