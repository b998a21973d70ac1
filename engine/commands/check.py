"""Check schema, hardware feasibility and plan; write nothing."""

from __future__ import annotations

import argparse

from engine.commands import options
from engine.errors import Exit


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe check`."""
    options.add_recipes(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print a line for each variant. Raises the error of the first variant that cannot be built."""
    from engine import api

    for checked in api.check(arguments.recipes, **options.reading(arguments)):
        variant = checked.variant
        print(f"{variant.loaded.path}: {variant.name} is fine: {' '.join(job.name for job in variant.jobs)}")
        if not checked.model:
            print(
                "  not checked: lengths, axes and memory against the model, which is not here yet (fetch checks them)"
            )
    return Exit.OK
