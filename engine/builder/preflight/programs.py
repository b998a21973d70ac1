"""Programs: the Python packages that the jobs import on this machine, and the Triton server that `bench` measures."""

from __future__ import annotations

from engine.builder.imports import cannot_import
from engine.builder.preflight.checked_variant import CheckedVariant
from engine.machine import imports, tools
from engine.runtimes import registry
from engine.runtimes.recipes import IN_PROCESS
from engine.runtimes.rival import no_checkpoint
from engine.step import Section
from engine.text import distribution


def look_at_tools(subject: CheckedVariant) -> None:
    """Raise RecipeError for a job whose step uses a package of this project's extras that is not installed.

    A job that runs on another machine, for its GPU, needs nothing here.
    """
    for job in subject.variant.jobs:
        if job.step.hardware() is not None:
            continue
        for name in job.step.tools_used():
            if distribution.extra_with(name) is None or tools.version_of(name) != tools.MISSING:
                continue
            module = distribution.module_of(name)
            if imports.location(module) is None:  # a package without a distribution can be imported, too
                with subject.at("name"):
                    raise cannot_import(job.name, module, f"ModuleNotFoundError: No module named {module!r}")


def look_at_server(subject: CheckedVariant) -> None:
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

        names = registry.of(recipe).candidates(recipe) or (recipe.target.runtime,)
        backends = [registry.find(name).backend for name in names]
        with subject.at("bench", "via"):
            find(Needs(backends=frozenset(each.backend for each in backends if each is not None)), pull=False)
