"""Resume a build in which only sources changed: run the jobs of the variants that read these sources."""

# The snapshot and the stored plan of the last build answer for all other variants.

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder.executors import slots
from engine.builder.executors.local import LocalExecutor
from engine.builder.loop import Options, run
from engine.builder.stored import StoredLookup, StoredVariant
from engine.errors import Exit
from engine.events import Ended, Finished, Noticed
from engine.recipe.project import project_of
from engine.report import plain, renewal
from engine.report.renewal import Resumed
from engine.report.repeated import RepeatedLines
from engine.store import file_lock
from engine.store.store import Store
from engine.store.stored_plan import StoredPlan

if TYPE_CHECKING:
    from engine.builder.selection import Reading
    from engine.recipe.load import LoadedRecipe
    from engine.report import BuildReport
    from engine.snapshot import ChangedFiles
    from engine.store.heads import Subject


def build(
    arguments: argparse.Namespace,
    changes: ChangedFiles,
    *,
    reading: Reading,
    report_for: Callable[..., BuildReport],
) -> Exit | None:
    """Build the variants that read the changed files, and return the exit code.

    `arguments` are those of `recipe build`, and `reading` are its options for reading recipes. `report_for` returns the
    object that prints events. `build` returns None, before anything is printed or run, if the change of a file may
    change the plan itself, or if the store has no plan for the snapshot.
    """
    plan = StoredPlan.of(changes)
    numbers = plan.reading(changes.names) if plan is not None else None
    if plan is None or numbers is None:
        return None
    fields = {number: plan.variant(number) for number in numbers}
    store = Store(Path(changes.path).parent.parent)
    lines = RepeatedLines(changes.snapshot, fields.values(), store, many=plan.size > 1)
    if not lines.are_known:
        return None
    lookup = StoredLookup(store, plan)
    variants = {number: StoredVariant(each, partial(_load, reading)) for number, each in fields.items()}
    resumed = Resumed(changes, plan, lookup, fields, variants, lines)
    (sys.stdout if arguments.json else sys.stderr).write(lines.others(json=arguments.json))
    with report_for(json=arguments.json, many=plan.size > 1) as report:
        finished, keys = _run(resumed, arguments, report)
    for number, variant in variants.items():
        if fields[number]["sections"]:
            plan.tables[variant.name] = _table(lookup, variant)
    data = plain.data(finished, "".join(plan.tables.values()))
    report.finish(data)
    renewal.keep(resumed, finished, keys, data)
    return finished.exit


def _run(
    resumed: Resumed, arguments: argparse.Namespace, report: BuildReport
) -> tuple[Finished, dict[tuple[str, str], str]]:
    """Run the loop on the variants that are built again, and return its last event and the keys of jobs."""
    keys: dict[tuple[str, str], str] = {}
    finished = Finished("failed", 0.0, Exit.FAILED, {})
    variants = list(resumed.variants.values())
    with file_lock.announcing(lambda text: report.on_event(Noticed(text))):
        for event in run(variants, resumed.lookup, _executor(arguments), _options(arguments)):
            if isinstance(event, Ended):
                keys[event.recipe, event.job] = event.key or ""
            if isinstance(event, Finished):
                finished = _together(event, resumed.plan, variants)
            report.on_event(finished if isinstance(event, Finished) else event)
    return finished, keys


def _executor(arguments: argparse.Namespace) -> LocalExecutor:
    return LocalExecutor(arguments.jobs or slots.default())


def _options(arguments: argparse.Namespace) -> Options:
    return Options(
        out=arguments.output or project_of(arguments.recipes[0]) / "build",
        keep_going=arguments.keep_going,
        allow_waiting=arguments.allow_waiting,
    )


def _together(finished: Finished, plan: StoredPlan, variants: Iterable[StoredVariant]) -> Finished:
    """Return the last event of the whole build: with the packages of all variants, in the order of the plan."""
    built = {variant.name for variant in variants}
    packages = {
        name: Path(place) for name, place in plan.packages.items() if name not in built or name in finished.packages
    }
    return replace(finished, packages={**packages, **finished.packages})


def _load(reading: Reading, subject: Subject) -> LoadedRecipe:
    """Read the recipe of a stored variant."""
    from engine.builder.selection import select
    from engine.recipe.load import load

    selection = select([subject.path], **reading)
    every = load(subject.path, set=selection.set, only=selection.only, allow=selection.allow)
    return next(each for each in every if each.variant == subject.variant)


def _table(lookup: StoredLookup, variant: StoredVariant) -> str:
    """Return the table of a variant whose jobs measure or validate."""
    from engine.builder.summary import summarize
    from engine.report import table

    return table.tables([summarize(lookup, variant)])
