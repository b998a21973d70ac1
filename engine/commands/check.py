"""Check schema, hardware feasibility, plan, and what a build would read and need here; write nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import Exit

if TYPE_CHECKING:
    from engine.builder.plan_cache import PlanCache
    from engine.recipe.schema import Recipe


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe check`."""
    options.add_recipes(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print a line for each variant. Raises UserError, with the errors of all recipes that cannot be built."""
    from engine.builder import plan_cache

    plan = plan_cache.unchanged(arguments.words[1:])
    if plan is not None:
        _print_last(plan)
        return Exit.OK
    from engine.builder.examining import boards, examine, newer
    from engine.builder.selection import select

    examination = examine(select(arguments.recipes, **options.reading(arguments)))
    for path in examination.abstract:
        print(f"{path}: abstract, skipped")
    for checked in examination.checks:
        variant = checked.variant
        _print(variant.loaded.path, variant.name, [job.name for job in variant.jobs], model=checked.model)
        _print_candidates(variant.loaded.recipe)
        if checked.untried is not None:
            print(f"  not tried: {checked.untried}; the build shows whether the export works")
        _print_unknown(checked.not_verified)
    variants = [checked.variant for checked in examination.checks]
    _print_notes([*boards(variants), *newer(variants)])
    return Exit.OK


def _print_last(plan: PlanCache) -> None:
    """Print the lines about the variants of the last build: nothing has changed, and they were checked then."""
    from engine.builder.plan_cache import variant_fields

    for each in plan.abstract:
        print(f"{each}: abstract, skipped")
    for entry in plan.entries.values():
        fields = variant_fields(entry)
        path, _, name, _ = fields["subject"]
        _print(path, name, [job["name"] for job in fields["jobs"]], model=entry["model"])
        if entry["choice"] is not None:
            print(f"  the last build chose: {entry['choice']}")
        _print_unknown(entry["unknown"])
    _print_notes(text for entry in plan.entries.values() for text in entry["notes"])


def _print_unknown(unknown: str | None) -> None:
    if unknown is not None:
        print(f"  warning: not verified: {unknown}")


def _print_notes(notes: Iterable[str]) -> None:
    """Print each note once, however many variants it is about."""
    for text in dict.fromkeys(notes):
        print(f"note: {text}")


def _print_candidates(recipe: Recipe) -> None:
    """Print which runtimes a build measures, for a recipe whose runtime stands for several."""
    from engine.runtimes import registry

    *others, last = registry.of(recipe).candidates(recipe) or ("",)
    if last:
        names = " and ".join(filter(None, (", ".join(others), last)))
        print(f"  a build measures {names}, and keeps the fastest that validates")


def _print(path: Path | str, name: str, jobs: Sequence[str], *, model: bool) -> None:
    print(f"{path}: {name} is fine: {' '.join(jobs)}")
    if not model:
        print("  not checked: lengths, axes and memory against the model, which is not here yet (fetch checks them)")
