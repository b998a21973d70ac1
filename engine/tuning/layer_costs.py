"""Layer costs: how much latency each kept layer takes, by a race of the model with all of them and without each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from engine.builder import joining, registry
from engine.builder.job import read_report
from engine.kit.accuracy.gate import Judged
from engine.kit.bench.race import P50, RaceRow
from engine.kit.bench.stats import Lead
from engine.steps.race import Contestant, Race

if TYPE_CHECKING:
    from engine.builder.variant import PlannedVariant
    from engine.kit.bench.race import RaceReport
    from engine.tuning.trials import Point, TrialBuilder


def measured(trials: TrialBuilder, point: Point, without: Mapping[str, Point]) -> Mapping[str, Lead]:
    """Return for each layer how many times faster the median call is without it, beside the model of `point`.

    `without` are the points that keep all layers of `point` but the named one. They miss a bound, and are timed all the
    same. A layer that could not be timed is left out. Raises UserError where the model of `point` could not be.
    """
    whole, *others = (trials.session(each) for each in (point, *without.values()))
    variants = [_accepted(session.variants[0]) for session in (whole, *others)]
    step = Race(contestants=tuple(Contestant.for_recipe(each.loaded.recipe, {}) for each in variants))
    plan = joining.joined({str(number): each for number, each in enumerate(variants)}, step, registry.steps())
    built = trials.built(replace(whole, variants=(plan,)), point)
    if built.error is not None:
        raise built.error
    report = cast("RaceReport", read_report(Race, built.records[step.step_name()]))
    rows = zip(without, report.rows[1:], strict=True)
    return {name: row.leads[P50] for name, row in rows if isinstance(row, RaceRow)}


def _accepted(variant: PlannedVariant) -> PlannedVariant:
    """Return a variant whose model is built and timed whatever its accuracy is."""
    jobs = (
        replace(job, origin=job.step.model_copy(update={"accepts_all": True})) if isinstance(job.step, Judged) else job
        for job in variant.jobs
    )
    return replace(variant, jobs=tuple(jobs))
