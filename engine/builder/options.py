"""What the user asks of a build, beside the recipes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import UsageError

HERE = "local"
"""Where jobs run by default: on this machine."""


@dataclass(frozen=True)
class Options:
    """Options of a build that are no rows of a key."""

    out: Path | None = None
    """The folder for packages; None for `build/` of the project."""
    parallel: int | None = None
    """How many jobs run at a time; None for what `recipe.toml` says, or else for as many as there are CPUs."""
    on: str = HERE
    """Where jobs run: `local` for this machine, or the address of a cluster."""
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
    is_trial: bool = False
    """Whether this is a trial of a search: it is no build of the recipe, so no head and no history has it."""

    def __post_init__(self) -> None:
        """Raise UsageError for options that do not go together."""
        refuse_elsewhere(self.on, {"--remake": self.remake, "-j": self.parallel})

    @property
    def place(self) -> Path:
        """The folder for packages; an error where none is named or chosen."""
        if self.out is None:
            raise AssertionError("a build begins before its folder for packages is chosen")
        return self.out


def refuse_elsewhere(on: str, given: Mapping[str, object]) -> None:
    """Raise UsageError for an option that a build on a cluster does not have; `given` maps each to its value."""
    for name, value in given.items():
        if on != HERE and value:
            raise UsageError(
                f"{name} is about jobs on this machine, and --on {on} runs jobs elsewhere",
                hint=f"leave {name} out, or build with --on {HERE}",
            )
