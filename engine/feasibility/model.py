"""Checks of the fetched model: whether memory, axes and operators fit the recipe's target."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from engine import gpus
from engine.feasibility import generation, overrides, sample_lengths, serving, shapes
from engine.feasibility.facts import ModelFacts
from engine.feasibility.target import devices, place
from engine.runtimes import registry
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
    generation.check_model(loaded, facts)
    sample_lengths.check_model(loaded, facts)
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
    weights = _weights(loaded, facts)
    for index, gpu in enumerate(devices(loaded)):
        room = gpu.memory_gib * sizes.GIB
        if weights > room:
            precision = loaded.recipe.precision
            what = f"the model's weights take {sizes.binary(weights)} in {precision}: more than the GPU's memory"
            at = place(loaded, index)
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


def _weights(loaded: LoadedRecipe, facts: ModelFacts) -> float:
    return facts.parameters * _BYTES[loaded.recipe.precision] if facts.parameters else float(facts.bytes)


def _least(loaded: LoadedRecipe, profile: Profile, facts: ModelFacts) -> float:
    """Return the least number of bytes that a profile's largest shape needs besides the weights.

    The estimate of a profile's memory counts four bytes for each number of the inputs. Where the model's hidden size is
    known, the estimate of a profile's memory also counts the input and the output of one layer.
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
