"""Begin a resumed build early: a worker starts while this process still imports the build loop."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.builder.executors import slots
from engine.builder.executors.local import LocalExecutor
from engine.builder.job import Traits
from engine.store.stored_plan import StoredPlan

if TYPE_CHECKING:
    from engine.builder.selection import Reading
    from engine.errors import Exit
    from engine.report import BuildReport
    from engine.snapshot import ChangedFiles


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
    if plan is None or not numbers:
        return None
    executor = LocalExecutor(arguments.jobs or slots.default())
    try:
        traits = (Traits(*job["traits"]) for job in plan.variant(numbers[0])["jobs"])
        executor.start_early(next(each for each in traits if each.sources))
        from engine.report import resume

        resumed = resume.prepared(changes, plan, numbers, reading)
        return None if resumed is None else resume.build(resumed, executor, arguments, report_for)
    finally:
        executor.close()
