"""Write the lock of a recipe: sources, versions and digests of its builds, for git and for `build --locked`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import Exit

if TYPE_CHECKING:
    from engine.lockfile.content import Lock


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe lock`."""
    options.add_recipes(parser, whole=True)
    options.add_refresh(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Write the locks of the recipes, and print a line for each lock."""
    from engine import api

    for locked in api.lock(arguments.recipes, **options.reading(arguments)):
        print(f"{locked.path}: {'written' if locked.changed else 'up to date'}, {_extent(locked.lock)}")
    return Exit.OK


def _extent(lock: Lock) -> str:
    """Return the numbers of jobs, keys and artifacts in a lock, as text."""
    everywhere = [job.output for variant in lock.variants.values() for job in variant.jobs.values() if job.output]
    outputs = [*everywhere, *(each for section in lock.machines for each in section.outputs.values())]
    jobs = sum(len(variant.jobs) for variant in lock.variants.values())
    artifacts = sum(each.artifact is not None for each in outputs)
    return f"{jobs} jobs, {len(outputs)} keys, {artifacts} artifacts"
