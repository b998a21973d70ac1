"""Check schema, hardware feasibility, plan, and what a build would read and need here; write nothing."""

from __future__ import annotations

import argparse

from engine.commands import options
from engine.errors import Exit

_NO_MODEL = "not checked: lengths, axes and memory against the model, which is not here yet (fetch checks them)"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe check`."""
    options.add_recipes(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print a line for each variant. Raises UserError, with the errors of all recipes that cannot be built."""
    from engine.builder.recipe_check import boards, examine, newer
    from engine.builder.selection import select
    from engine.runtimes import registry

    examination = examine(select(arguments.recipes, **options.reading(arguments)))
    for path in examination.abstract:
        print(f"{path}: abstract, skipped")
    for checked in examination.checks:
        variant = checked.variant
        print(f"{variant.loaded.path}: {variant.name} is fine: {' '.join(job.name for job in variant.jobs)}")
        if not checked.model:
            print(f"  {_NO_MODEL}")
        # The runtimes that a build measures, for a recipe whose runtime stands for several.
        recipe = variant.loaded.recipe
        *others, last = registry.of(recipe).candidates(recipe) or ("",)
        if last:
            names = " and ".join(filter(None, (", ".join(others), last)))
            print(f"  a build measures {names}, and keeps the fastest that validates")
        if checked.untried is not None:
            print(f"  not tried: {checked.untried}; the build shows whether the export works")
        if checked.not_verified is not None:
            print(f"  warning: not verified: {checked.not_verified}")
    variants = [checked.variant for checked in examination.checks]
    for text in dict.fromkeys((*boards(variants), *newer(variants))):
        print(f"note: {text}")
    return Exit.OK
