"""Preflight: faults that `recipe check` sees on this machine without building, in the words of the build's errors."""

from __future__ import annotations

from pathlib import Path

from engine import feasibility
from engine.builder import sources
from engine.builder.executors.outcomes import cannot_import
from engine.builder.preflight import images, model, samples
from engine.builder.preflight.model import CheckedVariant, look_at_onnx_file
from engine.builder.variant import PlannedVariant
from engine.errors import StepError
from engine.kit.checkpoints import licenses
from engine.machine import imports, tools
from engine.runtimes import registry
from engine.runtimes.recipes import IN_PROCESS
from engine.runtimes.runner import no_checkpoint
from engine.step import Section, Source
from engine.text import distribution


def look(variant: PlannedVariant, store: Path) -> CheckedVariant:
    """Return a variant with what this machine knows about its model; `store` is the folder of the store.

    Raises RecipeError for the first fault that a build of the variant would meet. `look` writes no file.
    """
    subject = model.checked(variant, store)
    _look_at_licenses(subject)
    if subject.facts is not None:
        feasibility.check_model(variant.loaded, subject.facts)
    model.look(subject)
    images.look(subject)
    look_at_onnx_file(subject)
    _look_at_tools(subject)
    samples.look(subject)
    _look_at_server(subject)
    return subject


def _look_at_licenses(subject: CheckedVariant) -> None:
    """Raise RecipeError where the policy refuses a licence; `fetch` judges what is not here yet."""
    recipe, names = subject.recipe, subject.recipe.policy.licenses
    if names is None:
        return
    known = {each.role: each for each in (subject.facts.licenses if subject.facts is not None else ())}
    for role, field in (("model", "source"), ("tokenizer", "tokenizer")):
        uri = getattr(recipe.model, field)
        source = None if uri is None else Source(uri=uri, part="license")
        if source is not None and (place := sources.path_of(source)) is not None:
            known[role] = licenses.of_source(role, source, place).about
        refusals = known[role].refusals(names) if source is not None and role in known else []
        if refusals:
            with subject.at("model", field):
                raise StepError(
                    f"policy.licenses refuses the model: {refusals[0]}",
                    [*refusals[1:], f"allowed: {', '.join(names)}"],
                    "add the licence to policy.licenses, or take another model",
                )


def _look_at_tools(subject: CheckedVariant) -> None:
    """Raise RecipeError for a job whose step uses a package of this project's extras that is not installed.

    A job that runs on another machine, for its GPU, needs nothing here.
    """
    for job in subject.variant.jobs:
        for name in job.step.tools_used() if job.step.hardware() is None else ():
            if distribution.extra_with(name) is None or tools.version_of(name) != tools.MISSING:
                continue
            module = distribution.module_of(name)
            if imports.location(module) is None:  # a package without a distribution can be imported, too
                with subject.at("name"):
                    raise cannot_import(job.name, module, f"ModuleNotFoundError: No module named {module!r}")


def _look_at_server(subject: CheckedVariant) -> None:
    """Raise RecipeError where `bench` needs a server and none can be used, or has a rival that cannot run the model."""
    recipe = subject.recipe
    measured = any(job.step.section is Section.BENCH and job.step.hardware() is None for job in subject.variant.jobs)
    if recipe.bench is None or not measured:
        return
    for rival in recipe.bench.against if recipe.model.is_onnx_file else ():
        if registry.find(rival.runtime).rival_of == "checkpoint":
            with subject.at("bench", "against"):
                raise no_checkpoint(registry.find(rival.runtime).title)
    if any(way != IN_PROCESS for way in recipe.bench.via):
        from engine.server import Needs, find

        names = registry.of(recipe).candidates(recipe) or (recipe.target.runtime,)
        backends = [registry.find(name).backend for name in names]
        with subject.at("bench", "via"):
            find(Needs(backends=frozenset(each.backend for each in backends if each is not None)), pull=False)
