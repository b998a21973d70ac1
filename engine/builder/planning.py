"""Planning: read and check the recipes of a selection, and plan their variants; all wrong recipes are reported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.builder import planning_reads
from engine.builder.selection import Selection, refuse
from engine.errors import Refusals, UsageError
from engine.recipe.load import LoadedRecipe, OpenedRecipe, opened

if TYPE_CHECKING:
    from engine.builder.variant import PlannedVariant


class Plan(NamedTuple):
    """The planned variants of a selection, and the recipes that are wrong or abstract."""

    variants: tuple[PlannedVariant, ...]
    refusals: Refusals
    abstract: tuple[Path, ...]
    """The files that other recipes extend and that make no package of their own."""

    def without_refused(self) -> tuple[PlannedVariant, ...]:
        """Return the variants of the recipes that are right."""
        return tuple(each for each in self.variants if each.loaded.path not in self.refusals.by_path)


def variants(selection: Selection) -> tuple[PlannedVariant, ...]:
    """Read, check and plan all variants of a selection. Raises UserError, with the errors of all wrong recipes."""
    planned = plan(selection)
    planned.refusals.refuse(len(selection.paths))
    return planned.variants


def plan(selection: Selection) -> Plan:
    """Read, check and plan all variants of a selection; the errors of wrong recipes are collected in the plan."""
    with planning_reads.noted():
        if selection.to:
            from engine.builder import jobs, registry

            for name in selection.to:
                jobs.known_step(name, registry.steps())
        return _plan(selection)


def _plan(selection: Selection) -> Plan:
    refusals = Refusals()
    recipes: list[OpenedRecipe] = []
    for path in selection.paths:
        with refusals.collecting(path):
            recipes.append(opened(path, allow=selection.allow))
    bases = _bases(recipes, some_unread=bool(refusals.by_path))
    if bases.issuperset(selection.paths):
        bases = set()  # a command about nothing but abstract recipes is an error
    loaded: list[LoadedRecipe] = []
    feasible: list[LoadedRecipe] = []
    for recipe in recipes:
        if recipe.path in bases:
            continue
        with refusals.collecting(recipe.path):
            own = recipe.variants(set=selection.set, only=selection.only, must_exist=not selection.frozen)
            loaded += own
            for each in own:
                refuse(each)
            feasible += own
    _collect_twins(loaded, refusals)
    planned = _planned(feasible, selection.to, refusals) if feasible else []
    if selection.to and planned and not any(each.jobs for each in planned):
        raise UsageError(
            f"no recipe here has a job {' or '.join(map(repr, selection.to))}",
            hint="`recipe graph` shows the jobs of a recipe",
        )
    return Plan(tuple(planned), refusals, tuple(recipe.path for recipe in recipes if recipe.path in bases))


def _planned(feasible: Sequence[LoadedRecipe], to: Sequence[str], refusals: Refusals) -> list[PlannedVariant]:
    # The import of all steps takes long, and nobody waits for it where every recipe is refused.
    from engine.builder import jobs, registry

    steps = registry.steps()
    planned: list[PlannedVariant] = []
    for each in feasible:
        with refusals.collecting(each.path):
            planned.append(jobs.planned_variant(each, steps, to))
    return planned


def _bases(recipes: Sequence[OpenedRecipe], *, some_unread: bool) -> set[Path]:
    """Return the files that are only extended: with `abstract: true`, or without a name and extended by another recipe.

    With `some_unread`, each file without a name counts, because a recipe that cannot be read may extend the file.
    """
    extended = {os.path.realpath(file) for recipe in recipes for file in recipe.document.files[1:]}
    return {
        recipe.path
        for recipe in recipes
        if recipe.document.abstract is not None
        or (not recipe.has_name and (some_unread or os.path.realpath(recipe.path) in extended))
    }


def _collect_twins(loaded: Sequence[LoadedRecipe], refusals: Refusals) -> None:
    """Collect an error for recipes with one name; without the error, their packages would overwrite each other."""
    first: dict[str, LoadedRecipe] = {}
    for each in loaded:
        name = each.recipe.name
        if name in first:
            same = os.path.realpath(first[name].path) == os.path.realpath(each.path)
            error = each.error(
                f"the recipe {name!r} is given twice" if same else f"two recipes are called {name!r}",
                "name",
                facts=[str(first[name].path), str(each.path)],
                hint="give it once" if same else "their packages would overwrite each other: rename one",
            )
            for twin in (first[name], each):
                refusals.by_path.setdefault(twin.path, error)
        first.setdefault(name, each)
