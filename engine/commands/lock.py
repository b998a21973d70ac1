"""Write the lock of a recipe: sources, versions and digests of its builds, for git and for `build --locked`."""

from __future__ import annotations

import argparse

from engine.commands import options
from engine.errors import Exit


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe lock`."""
    options.add_recipes(parser, whole=True)
    options.add_refresh(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Write the locks of the recipes, and print a line for each lock."""
    from engine import api

    for locked in api.lock(arguments.recipes, **options.reading(arguments)):
        jobs = [job for variant in locked.lock.variants.values() for job in variant.jobs.values()]
        everywhere = [job.output for job in jobs if job.output]
        outputs = [*everywhere, *(each for section in locked.lock.machines for each in section.outputs.values())]
        artifacts = sum(each.artifact is not None for each in outputs)
        state = "written" if locked.changed else "up to date"
        print(f"{locked.path}: {state}, {len(jobs)} jobs, {len(outputs)} keys, {artifacts} artifacts")
    return Exit.OK
