"""What the user asks of a build, beside the recipes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """Options of a build that are no rows of a key."""

    out: Path
    force: frozenset[str] = frozenset()
    remake: frozenset[str] = frozenset()
    """Steps whose stored jobs run again, to compare the bytes; `remake.ALL` stands for every reproducible step."""
    keep_going: bool = False
    allow_waiting: bool = False
    wait: float | None = None
    """For how many seconds the build waits for results of other machines; None if it does not wait."""
    runs: bool = True
    """Whether jobs run. If not, a job without a record fails, and the last outputs of each variant are brought."""
    is_what_if: bool = False
    """Whether the command line overrides the recipes: a build that fails then leaves older packages in place."""
