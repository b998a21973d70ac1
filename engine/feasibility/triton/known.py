"""What a recipe, and its model where it is here, tell of the models that overrides are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.feasibility.facts import Axes, ModelFacts
from engine.feasibility.shapes import profiles
from engine.feasibility.triton.fault import About, ConfigTensor
from engine.recipe.model_config import GRAPH_PARTS
from engine.runtimes import registry
from engine.runtimes.backends import Backend
from engine.runtimes.profiles import greatest
from engine.runtimes.triton_tensors import TYPES, is_batch

if TYPE_CHECKING:
    from engine.recipe.schema import Profile, Recipe

_USUAL = {"transformers": "int64", "timm": "float32"}
"""What inputs are, by the kind of checkpoint: tokens, or images."""


def sections(recipe: Recipe) -> Iterator[tuple[str, tuple[str | int, ...], Mapping[str, Any]]]:
    """Yield the overrides of each model: the part's name, the path to them in the recipe, and what they say."""
    said = recipe.package.triton
    above = ("package", "triton")
    if said.model_extra:
        yield "model", above, said.model_extra
    for part, overrides in said.models.items():
        yield part, (*above, "models", part), overrides


def of_recipe(recipe: Recipe, part: str) -> About:
    """Return what a recipe says of a part before its model is read."""
    said, target = recipe.package.triton, recipe.target
    runtime = registry.of(recipe)
    by_engine = runtime.backend is Backend.TENSORRT
    limits = (said.max_batch_size, greatest(recipe.profiles).get("batch"))
    several = part == "ensemble" and not tasks.generates(recipe.model.task)
    other = Backend.ENSEMBLE if several else Backend.PYTHON
    return About(
        backend=(runtime.backend or Backend.PYTHON) if part in GRAPH_PARTS else other,
        part=part,
        name=(said.name or recipe.name) if part == "model" else None,
        on_gpu=target.device != "cpu",
        accelerator=runtime.accelerator(target),
        batch=said.max_batch_size,
        most=min((limit for limit in limits if limit is not None), default=None),
        profiles=max(1, len(recipe.profiles)) if by_engine else None,
        decoupled=part == "stream",
    )


def of_model(recipe: Recipe, facts: ModelFacts) -> About | None:
    """Return what is known of the model itself by the report of its fetch; None where that tells no tensors."""
    if not facts.axes or tasks.generates(recipe.model.task or facts.task):
        return None
    about = of_recipe(recipe, "model")
    batch = about.batch
    if batch is None:
        batch = _batch(recipe, facts)
    usual = _USUAL.get(facts.kind)
    inputs = {name: _tensor(facts.types.get(name, usual), shape, batch=batch) for name, shape in facts.axes.items()}
    outputs = {name: _tensor(kind, shape, batch=batch) for name, (kind, shape) in facts.outputs.items()}
    return replace(about, batch=batch, inputs=inputs, outputs=outputs or None, sizes=_sizes(profiles(recipe, facts)))


def _sizes(taken: Sequence[Profile]) -> dict[str, tuple[int, int]]:
    """Return what profiles take of each axis, from the least to the most."""
    axes = {axis for profile in taken for axis in profile}
    ranges = {axis: [profile[axis] for profile in taken if axis in profile] for axis in axes}
    return {axis: (min(each.min for each in said), max(each.max for each in said)) for axis, said in ranges.items()}


def _batch(recipe: Recipe, facts: ModelFacts) -> int | None:
    """Return the max_batch_size that the package will have; None where it cannot be told yet."""
    axis = (next(iter(facts.axes.values())) or (0,))[0]
    if not isinstance(axis, str) or not is_batch(axis):
        return 0
    outputs = [shape for _, shape in facts.outputs.values()]
    if any(shape is None or shape[:1] != (axis,) for shape in (*facts.axes.values(), *outputs)):
        return None  # an output's axis may have no name: the graph will tell
    return greatest(profiles(recipe, facts)).get(axis)


def _tensor(kind: str | None, shape: Axes | None, *, batch: int | None) -> ConfigTensor:
    if batch is None or shape is None:
        return ConfigTensor(TYPES.get(kind or ""))
    row = shape[1:] if batch else shape
    dims = tuple(size if isinstance(size, int) else -1 for size in row)
    axes = tuple(size if isinstance(size, str) else None for size in row)
    # Triton has no tensors without dimensions: one number a row is [1].
    return ConfigTensor(TYPES.get(kind or ""), dims or None, axes=axes)
