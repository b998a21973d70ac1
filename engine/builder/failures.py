"""Failures: the reasons of a failed build for callers in Python, with the step and the log of each failed job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.builder.variant import PlannedVariant
from engine.errors import Refusals
from engine.events import BuildFailure, Ended
from engine.store.store import Store


def of_recipes(refusals: Refusals) -> list[BuildFailure]:
    """Return a failure for each recipe that is wrong."""
    return [BuildFailure(str(path), "", "", error) for path, error in refusals.by_path.items()]


def of_jobs(ended: Iterable[Ended], variants: Sequence[PlannedVariant], store: Store) -> list[BuildFailure]:
    """Return a failure for each job that failed, with the log of its last run."""
    steps = {(variant.name, job.name): job.step for variant in variants for job in variant.jobs}
    failures = []
    for each in ended:
        if each.error is None:
            continue
        logs = [store.log_path(each.key, failed=failed) for failed in (True, False)] if each.key else []
        log = next((path for path in logs if path.is_file()), None)
        step = steps[each.recipe, each.job].step_name()
        failures.append(BuildFailure(each.recipe, each.job, step, each.error, log))
    return failures
