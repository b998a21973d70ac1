"""Joining: the plans of several points of a search in one plan, whose last job takes the model of each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.builder import jobs, plan_graph
from engine.builder.job import Job
from engine.builder.variant import PlannedVariant

if TYPE_CHECKING:
    from engine.step import Step

_MODEL = "validated"
"""The output that is the model of a point: built, and compared with the original."""


def joined(variants: Mapping[str, PlannedVariant], step: Step, steps: Mapping[str, type[Step]]) -> PlannedVariant:
    """Return the first of the variants with the jobs of all, and with a job of `step` that takes their models.

    `variants` are planned variants of one recipe by the labels that tell their jobs apart, each up to its validated
    model. Jobs with the same step and inputs exist once; the name of another job whose name is taken has the label:
    `quantize@int4`. The inputs in `step.models_of()` are the models of the variants, in their order. The other inputs
    of the step are those that it would have in the first variant. Raises StepError for an input that no step makes.
    """
    first = next(iter(variants.values()))
    recipe = first.loaded.recipe
    _, wiring = jobs.of_one_runtime(recipe, steps)
    needs = {parameter: wiring.maker(parameter) for parameter in step.inputs_used()}
    by_name = {job.name: job for job in plan_graph.up_to(jobs.plan(recipe, steps), needs.values())}
    for (label, variant), parameter in zip(variants.items(), step.models_of(), strict=True):
        names = jobs.add_branch(by_name, variant.jobs, label)
        model = next(job.name for job in variant.jobs if job.step.makes == _MODEL)
        needs[parameter] = names[model]
    last = Job(recipe=recipe.name, name=step.step_name(), origin=step, needs=needs, hermetic=recipe.hermetic)
    return PlannedVariant(first.origin, jobs.ordered([*by_name.values(), last]))
