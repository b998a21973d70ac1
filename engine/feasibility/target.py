"""Target: the devices of the package, whether the runtime runs on them, and which options it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine import gpus
from engine.errors import UsageError
from engine.gpus import Gpu
from engine.runtimes import registry
from engine.text import suggestions

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.recipe.load import LoadedRecipe
    from engine.runtimes.runtime import Runtime

_SECTIONS = ("tensorrt",)
"""Sections of a recipe that hold nothing but options of a runtime."""


def check(loaded: LoadedRecipe) -> tuple[Gpu, ...]:
    """Return the GPUs that the recipe names, none for a cpu. Raises RecipeError for wrong fields of `target`."""
    recipe = loaded.recipe
    target = recipe.target
    runtime = registry.of(recipe)
    if target.provider is not None and target.provider not in runtime.providers:
        owners = [each for each in registry.runtimes().values() if target.provider in each.providers]
        what = f"`provider` is {registry.in_words(owners)}'s; this recipe uses {target.runtime}"
        raise loaded.error(what, "target", "provider", hint="leave it out")
    if target.device == "cpu":
        runtime.refuse_cpu(loaded)
        return ()
    named = devices(loaded)
    _several(loaded, named, runtime)
    if target.isa is not None:
        what = f"`isa` is about a cpu's instructions; the target is {gpus.called(named)}"
        raise loaded.error(what, "target", "isa", hint="leave it out")
    runtime.refuse_gpus(loaded, named)
    return named


def devices(loaded: LoadedRecipe) -> tuple[Gpu, ...]:
    """Return the GPUs in the order of `target.device`. Raises RecipeError at a name that is no GPU."""
    return tuple(_gpu(loaded, index) for index in range(len(loaded.recipe.target.devices)))


def device_path(loaded: LoadedRecipe, index: int) -> tuple[str | int, ...]:
    """Return the path of a device in the recipe: the field `target.device`, or an item of the list `target.device`."""
    one = isinstance(loaded.recipe.target.device, str)
    return ("target", "device") if one else ("target", "device", index)


def _gpu(loaded: LoadedRecipe, index: int) -> Gpu:
    name = loaded.recipe.target.devices[index]
    if name.lower() == "cpu":
        what, hint = "a cpu has no place in a list of GPUs", "write device: cpu alone; `matrix` varies target.device"
        if isinstance(loaded.recipe.target.device, str):
            what, hint = f"no device is known as {name!r}", suggestions.did_you_mean("cpu")
        raise loaded.error(what, *device_path(loaded, index), hint=hint)
    try:
        return gpus.find(name)
    except UsageError as error:
        hint = f"{error.hint}; for no GPU, device: cpu"
        raise loaded.error(error.what, *device_path(loaded, index), facts=error.facts, hint=hint) from None


def _several(loaded: LoadedRecipe, named: Sequence[Gpu], runtime: Runtime) -> None:
    for index, gpu in enumerate(named):
        if gpu in named[:index]:
            names = loaded.recipe.target.devices
            what = f"the {gpu.name} is named twice: {names[named.index(gpu)]} and {names[index]}"
            raise loaded.error(what, *device_path(loaded, index), hint="leave one out")
    if len(named) > 1 and not runtime.several:
        able = [each for each in registry.runtimes().values() if each.several]
        fitting = [each for each in able if all(each.builds_for(gpu) for gpu in named)]
        of_each = f"make a recipe of each: matrix: {{target.device: [{', '.join(gpu.name for gpu in named)}]}}"
        hint = f"use runtime: {registry.in_words(fitting)}" if fitting else of_each
        what = f"{runtime.name} builds for one device; {len(named)} are named"
        facts = [f"one engine for several devices is what {' and '.join(each.title for each in able)} builds"]
        if runtime.candidates(loaded.recipe):
            facts, hint = ["each kind of GPU has a fastest runtime of its own"], of_each
        raise loaded.error(what, "target", "device", facts=facts, hint=hint)


def check_options(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError at the first option of the recipe that its runtime ignores or does not allow."""
    recipe, runtime = loaded.recipe, registry.of(loaded.recipe)
    for section in _SECTIONS:
        if getattr(recipe, section) and section not in runtime.sections(recipe.target):
            provider = f" with the provider {recipe.target.provider or 'cpu'}"
            uses = f"{runtime.name}{provider if runtime.providers else ''}"
            what = f"`{section}` has options for a runtime that this recipe does not use: it uses {uses}"
            raise loaded.error(what, section, hint=f"leave the section out (`{section}: null` over a parent's)")
    for name in recipe.runtimes:
        if name != runtime.name:
            what = f"`runtimes.{name}` has options for a runtime that this recipe does not use: it uses {runtime.name}"
            raise loaded.error(what, "runtimes", name, hint="leave them out")
    _own(loaded)
    runtime.refuse_options(loaded, devices)


def _own(loaded: LoadedRecipe) -> None:
    """Check the options under `runtimes` with the runtime's `options_model`."""
    runtime = registry.of(loaded.recipe)
    options = loaded.recipe.runtimes.get(runtime.name)
    if options is None:
        return
    if runtime.options_model is None:
        what = f"the runtime {runtime.name} takes no options under `runtimes`"
        raise loaded.error(what, "runtimes", runtime.name, hint="leave them out")
    from pydantic import ValidationError

    try:
        runtime.options_model.model_validate(options)
    except ValidationError as error:
        raise loaded.complaint(error, "runtimes", runtime.name) from None
