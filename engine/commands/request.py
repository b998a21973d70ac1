"""What the command line asks of `recipe build`, as one value."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder.options import HERE, Options, refuse_elsewhere
from engine.commands.options import reading
from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.builder.selection import Reading
    from engine.snapshot import ChangedFiles


@dataclass(frozen=True)
class BuildRequest:
    """What the command line asks of a build."""

    words: Sequence[str]
    recipes: Sequence[Path]
    reading: Reading
    changes: ChangedFiles | None
    """The files that changed since the last build, if its snapshot knows all else."""
    options: Options
    json: bool
    quiet: bool
    verbose: bool
    dry_run: bool
    waiting: bool

    @property
    def is_repeatable(self) -> bool:
        """Whether the same command has nothing to do when it is repeated; any other build keeps no snapshot."""
        is_here = self.options.on == HERE
        return is_here and not (self.options.force or self.options.remake or self.reading.get("refresh"))


def request_of(arguments: argparse.Namespace) -> BuildRequest:
    """Return what the command line asks. Raises UserError for options that do not go together."""
    if arguments.timeout is not None and not arguments.wait:
        raise UsageError("--timeout limits --wait", hint="add --wait, or leave --timeout out")
    refuse_elsewhere(arguments.on, {"--dry-run": arguments.dry_run, "--waiting": arguments.waiting})
    patience = math.inf if arguments.timeout is None else arguments.timeout
    options = Options(
        out=arguments.output,
        parallel=arguments.jobs,
        on=arguments.on,
        force=frozenset(arguments.force),
        remake=frozenset(arguments.remake),
        keep_going=arguments.keep_going,
        allow_waiting=arguments.allow_waiting,
        wait=patience if arguments.wait else None,
    )
    return BuildRequest(
        words=arguments.words[1:],
        recipes=arguments.recipes,
        reading=reading(arguments),
        changes=arguments.changes,
        options=options,
        json=arguments.json,
        quiet=arguments.quiet,
        verbose=arguments.verbose,
        dry_run=arguments.dry_run,
        waiting=arguments.waiting,
    )
