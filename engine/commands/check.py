"""Check schema, hardware feasibility, plan, and what a build would read and need here; write nothing."""

from __future__ import annotations

import argparse

from engine.commands import options
from engine.errors import Exit


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe check`."""
    options.add_recipes(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print a line for each variant. Raises UserError, with the errors of all recipes that cannot be built."""
    from engine import api

    examination = api.examine(arguments.recipes, **options.reading(arguments))
    for path in examination.abstract:
        print(f"{path}: abstract, skipped")
    for checked in examination.checks:
        variant = checked.variant
        print(f"{variant.loaded.path}: {variant.name} is fine: {' '.join(job.name for job in variant.jobs)}")
        if not checked.model:
            print(
                "  not checked: lengths, axes and memory against the model, which is not here yet (fetch checks them)"
            )
    return Exit.OK
