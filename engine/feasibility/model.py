"""Checks of the fetched model: whether memory, axes, operators and generated text fit the recipe's target."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from engine import gpus, tasks
from engine.feasibility import bench, overrides, serving, shapes
from engine.feasibility.facts import ModelFacts
from engine.feasibility.target import device_path, devices
from engine.recipe import supported
from engine.runtimes import recipes, registry
from engine.tasks import Generates
from engine.text import sizes

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.recipe.load import LoadedRecipe
    from engine.recipe.values import Profile

_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "int8": 1.0, "fp8": 1.0, "int4": 0.5}
"""Bytes of one parameter by precision."""
_WORKING = {"fp32": 4}
"""The number of bytes of one number of an activation, by precision; 2 for a precision that is not listed."""


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError where the recipe asks for something that the fetched model or the target cannot do."""
    _generation(loaded, facts)
    bench.check_model(loaded, facts)
    if facts.operators:
        registry.of(loaded.recipe).refuse_operators(loaded, facts.operators)
    if facts.quantized and loaded.recipe.target.device != "cpu":
        registry.of(loaded.recipe).refuse_quantized(loaded, facts.quantized, devices(loaded))
    _memory(loaded, facts)
    shapes.check_model(loaded, facts)
    overrides.check_model(loaded, facts)
    serving.check_model(loaded, facts)


def _memory(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    if loaded.recipe.target.device == "cpu":
        return
    per_parameter = _BYTES[loaded.recipe.precision]
    weights = facts.parameters * per_parameter if facts.parameters else float(facts.bytes)
    for index, gpu in enumerate(devices(loaded)):
        room = gpu.memory_gib * sizes.GIB
        if weights > room:
            precision = loaded.recipe.precision
            what = f"the model's weights take {sizes.binary(weights)} in {precision}: more than the GPU's memory"
            at = device_path(loaded, index)
            raise loaded.error(what, *at, facts=_has(loaded, index, gpu), hint=_larger(loaded, weights))
        for number, profile in enumerate(loaded.recipe.profiles):
            working = _least(loaded, profile, facts)
            if weights + working > room:
                shape = ", ".join(f"{axis} {extents.max}" for axis, extents in profile.items())
                what = (
                    f"at {shape} the model takes more than the GPU's memory: "
                    f"{sizes.binary(weights)} of weights and at least {sizes.binary(working)} to work in"
                )
                hint = f"lower the profile's max; or {_larger(loaded, weights + working)}"
                raise loaded.error(what, "profiles", number, facts=_has(loaded, index, gpu), hint=hint)


def _least(loaded: LoadedRecipe, profile: Profile, facts: ModelFacts) -> float:
    """Return the least bytes that a profile's largest shape needs besides the weights.

    Counted are four bytes for each number of the inputs, and the input and output of a layer of known hidden size.
    """
    largest = {axis: extents.max for axis, extents in profile.items()}
    inputs = sum(
        4 * prod(axis if isinstance(axis, int) else largest.get(axis, 1) for axis in shape)
        for shape in facts.axes.values()
    )
    tokens = largest.get("batch", 1) * largest.get("sequence", 1)
    return inputs + 2 * tokens * (facts.width or 0) * _WORKING.get(loaded.recipe.precision, 2)


def _has(loaded: LoadedRecipe, index: int, gpu: Gpu) -> list[str]:
    """Return the GPU's memory, and where the recipe's name of the GPU leaves it open, which board is meant."""
    from engine.gpus.names import read_as  # other recipes do not wait for this import

    return [f"the {gpu.name} has {gpu.memory_gib} GiB", *filter(None, [read_as(loaded.recipe.target.devices[index])])]


def _larger(loaded: LoadedRecipe, needed: float) -> str:
    """Return a hint with the three smallest GPUs that have the memory, the precision and the runtime of the recipe."""
    recipe = loaded.recipe
    able = [
        gpu
        for gpu in gpus.CATALOGUE
        if gpu.memory_gib * sizes.GIB >= needed
        and recipe.precision in gpu.dtypes
        and registry.of(recipe).builds_for(gpu)
    ]
    enough = sorted(able, key=lambda gpu: gpu.memory_gib)
    server = [gpu for gpu in enough if gpu.sold in ("data-center", "aws-g5")] or enough
    if not server:
        return "no GPU known here is large enough"
    return f"take a larger GPU ({', '.join(gpu.name for gpu in server[:3])})"


def _generation(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for `generate` without a generating model, or for text that target or model cannot generate."""
    recipe = loaded.recipe
    task = recipe.model.task or facts.task
    _perplexity(loaded, task)
    if task is None or not tasks.generates(task):
        if recipe.generate:
            model_is = f"is for {task}" if task else "does not say that it is for generating text"
            hint = "take `generate` out; or say `task:` under `model:`, if that is what the model is for"
            what = f"the recipe says how text is generated, and the model {model_is}"
            raise loaded.error(what, "generate", hint=hint)
        return
    if supported.off_the_cpu(recipe):
        what = f"not supported yet: generating text {supported.where(recipe)}; the model is for {task}"
        raise loaded.error(what, "target", hint=f"use {supported.ON_A_CPU}")
    if recipes.served(recipe):
        what = f"not supported yet: measuring generated text through a server; the model is for {task}"
        raise loaded.error(what, "bench", "via", hint="use via: [in-process]")
    _room(loaded, task, facts.max_sequence)


def _perplexity(loaded: LoadedRecipe, task: str | None) -> None:
    """Raise RecipeError where perplexity is measured of a model that does not continue texts."""
    if loaded.recipe.validation.perplexity is None:
        return
    if task is None or tasks.find(task).generates is not Generates.CONTINUES:
        model_is = f"is for {task}" if task else "does not say that it continues texts"
        what = f"perplexity is for models that continue a text, and the model {model_is}"
        hint = "take `perplexity` out; or say `task:` under `model:`, if that is what the model is for"
        raise loaded.error(what, "validate", "perplexity", hint=hint)


def _room(loaded: LoadedRecipe, task: str, longest: int | None) -> None:
    """Raise RecipeError where a text, with the new tokens that continue it, exceeds the model's positions."""
    new = loaded.recipe.generate.get("max_new_tokens")
    if longest is None:
        return
    if new is not None and new >= longest:
        what = f"{new} new tokens are more than the model has positions for: {longest}"
        raise loaded.error(what, "generate", "max_new_tokens", hint=f"at most {longest - 1} is possible")
    one_row = tasks.find(task).generates is Generates.CONTINUES
    shapes = loaded.recipe.bench.shapes if loaded.recipe.bench and one_row else ()
    for index, shape in enumerate(shapes):
        new_tokens = tasks.MEASURED if new is None else new
        prompt = shape.axes.get("sequence", 1)
        if prompt <= longest < prompt + new_tokens:
            tokens = f"a prompt of {prompt} tokens and {new_tokens} new ones"
            what = f"{tokens} are more than the model has positions for: {longest}"
            hint = f"measure at most {max(longest - new_tokens, 1)} tokens, or lower generate.max_new_tokens"
            raise loaded.error(what, "bench", "shapes", index, "sequence", hint=hint)
