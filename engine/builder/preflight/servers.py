"""Servers: whether this machine has a Triton server, where the recipe measures its model through one."""

from __future__ import annotations

from engine.builder.preflight.checked_variant import CheckedVariant
from engine.runtimes import registry
from engine.runtimes.recipes import IN_PROCESS
from engine.runtimes.rival import no_checkpoint
from engine.step import Section


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where `bench` needs a server and none can be used, or has a rival that cannot run the model."""
    recipe = subject.variant.loaded.recipe
    measured = any(job.step.section is Section.BENCH and job.step.hardware() is None for job in subject.variant.jobs)
    if recipe.bench is None or not measured:
        return
    if recipe.model.is_onnx_file:
        for rival in recipe.bench.against:
            if registry.find(rival.runtime).rival_of == "checkpoint":
                with subject.at("bench", "against"):
                    raise no_checkpoint(registry.find(rival.runtime).title)
    if any(way != IN_PROCESS for way in recipe.bench.via):
        from engine.server import Needs, find

        names = registry.of(recipe).candidates(recipe.target) or (recipe.target.runtime,)
        backends = [registry.find(name).backend for name in names]
        with subject.at("bench", "via"):
            find(Needs(backends=frozenset(each.backend for each in backends if each is not None)), pull=False)
