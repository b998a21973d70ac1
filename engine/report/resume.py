"""Resume a build in which only sources changed: run the jobs of the variants that read these sources."""

# The snapshot and the stored plan of the last build answer for all other variants.

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder.announcing import announcing
from engine.builder.loop import Options, run
from engine.builder.stored import StoredLookup, loading, variant_of
from engine.errors import Exit
from engine.events import Ended, Finished
from engine.recipe.project import project_of
from engine.report import folding, renewal, results
from engine.report.renewal import Resumed
from engine.report.repeated import RepeatedLines
from engine.store.opening import open_store
from engine.store.stored_plan import StoredPlan

if TYPE_CHECKING:
    from engine.builder.executors.executor import Executor
    from engine.builder.selection import Reading
    from engine.builder.variant import PlannedVariant
    from engine.report import BuildReport
    from engine.snapshot import ChangedFiles


def prepared(changes: ChangedFiles, plan: StoredPlan, numbers: Sequence[int], reading: Reading) -> Resumed | None:
    """Return the build of the variants `numbers` of a stored plan; None if the snapshot does not fit the plan.

    `reading` are the options for reading recipes. Samples that cannot be read fit no plan: the whole build says why.
    """
    if own := [Path(name) for name in changes.names if name.endswith((".jsonl", ".npz"))]:
        from engine.kit.inputs import samples

        if not all(map(samples.is_readable, own)):
            return None
    fields = {number: plan.variant(number) for number in numbers}
    variants = {number: variant_of(each, loading(reading)) for number, each in fields.items()}
    project = project_of(next(iter(variants.values())).subject.path)
    store = open_store(Path(changes.path).parent.parent, project=project)
    lines = RepeatedLines(changes.snapshot, fields.values(), store, many=plan.size > 1)
    lookup = StoredLookup(store, plan, changes, fields.values())
    return Resumed(changes, plan, lookup, fields, variants, lines) if lines.are_known else None


def build(
    resumed: Resumed, executor: Executor, arguments: argparse.Namespace, report_for: Callable[..., BuildReport]
) -> Exit:
    """Run the jobs of a resumed build, print its events and results, and return the exit code.

    `arguments` are those of `recipe build`; `report_for` returns the object that prints events.
    """
    plan, lookup = resumed.plan, resumed.lookup
    _print_others(resumed, arguments)
    with report_for(json=arguments.json, variants=plan.size) as report:
        finished, keys = _run(resumed, executor, arguments, report)
    for number, variant in resumed.variants.items():
        if resumed.before[number]["sections"]:
            plan.tables[variant.name] = _table(lookup, variant)
    tables = dict.fromkeys((name for name in plan.packages), "") | dict(plan.tables)
    report.finish(results.results(finished, tables, built=[each.name for each in resumed.variants.values()]))
    renewal.keep(resumed, finished, keys, results.results(finished, tables).texts())
    return finished.exit


def _print_others(resumed: Resumed, arguments: argparse.Namespace) -> None:
    """Print the lines about the variants that are not built again."""
    if arguments.json:
        sys.stdout.write(resumed.lines.others(json=True))
    elif not arguments.quiet:
        folds = resumed.plan.size > folding.MANY and not arguments.verbose
        sys.stderr.write(resumed.lines.others_folded() if folds else resumed.lines.others(json=False))


def _run(
    resumed: Resumed, executor: Executor, arguments: argparse.Namespace, report: BuildReport
) -> tuple[Finished, dict[tuple[str, str], str]]:
    """Run the loop on the variants that are built again, and return its last event and the keys of jobs."""
    keys: dict[tuple[str, str], str] = {}
    finished = Finished("failed", 0.0, Exit.FAILED, {})
    variants = list(resumed.variants.values())
    with announcing(resumed.lookup.store, report.on_event):
        for event in run(variants, resumed.lookup, executor, _options(arguments)):
            if isinstance(event, Ended):
                keys[event.recipe, event.job] = event.key or ""
            if isinstance(event, Finished):
                finished = _together(event, resumed.plan, variants)
            report.on_event(finished if isinstance(event, Finished) else event)
    return finished, keys


def _options(arguments: argparse.Namespace) -> Options:
    return Options(
        out=arguments.output or project_of(arguments.recipes[0]) / "build",
        keep_going=arguments.keep_going,
        allow_waiting=arguments.allow_waiting,
        wait=arguments.wait,
        is_what_if=bool(arguments.set),
    )


def _together(finished: Finished, plan: StoredPlan, variants: Iterable[PlannedVariant]) -> Finished:
    """Return the last event of the whole build: with the packages of all variants, in the order of the plan."""
    built = {variant.name for variant in variants}
    packages = {
        name: Path(place) for name, place in plan.packages.items() if name not in built or name in finished.packages
    }
    return replace(finished, packages={**packages, **finished.packages})


def _table(lookup: StoredLookup, variant: PlannedVariant) -> str:
    """Return the table of a variant whose jobs measure or validate."""
    from engine.builder.summary import summarize
    from engine.report import table

    return table.tables([summarize(lookup, variant)])
