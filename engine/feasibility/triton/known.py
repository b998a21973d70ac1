"""Makes `About`, the description of a model, from the recipe and, after `fetch`, from the model's properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.feasibility.facts import Axes, ModelFacts
from engine.feasibility.shapes import profiles
from engine.feasibility.triton.fault import About, ConfigTensor
from engine.recipe.model_config import GRAPH_PARTS
from engine.runtimes import registry, triton_images
from engine.runtimes.backends import Backend
from engine.runtimes.profiles import greatest
from engine.runtimes.triton_tensors import TYPES, is_batch

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe
    from engine.recipe.values import Profile

_USUAL = {"transformers": "int64", "timm": "float32"}
"""The data type of a model's inputs by the kind of checkpoint: int64 for token ids, float32 for images."""


def sections(recipe: Recipe) -> Iterator[tuple[str, tuple[str | int, ...], Mapping[str, Any]]]:
    """Yield the name, the path in the recipe and the overrides of each part of the package that has overrides."""
    triton = recipe.package.triton
    above = ("package", "triton")
    if triton.model_extra:
        yield "model", above, triton.model_extra
    for part, overrides in triton.models.items():
        yield part, (*above, "models", part), overrides


def of_recipe(recipe: Recipe, part: str) -> About:
    """Return the description (`About`) of a part of the package from the recipe alone, before the model is fetched."""
    triton, target = recipe.package.triton, recipe.target
    runtime = registry.of(recipe)
    by_engine = runtime.backend is Backend.TENSORRT
    limits = (triton.max_batch_size, greatest(recipe.profiles).get("batch"))
    several = part == "ensemble" and not tasks.generates(recipe.model.task)
    other = Backend.ENSEMBLE if several else Backend.PYTHON
    image = triton_images.tag_of(recipe)
    return About(
        backend=(runtime.backend or Backend.PYTHON) if part in GRAPH_PARTS else other,
        part=part,
        name=(triton.name or recipe.name) if part == "model" else None,
        release=image.release if image is not None else "",
        on_gpu=target.device != "cpu",
        accelerator=runtime.accelerator(target),
        batch=triton.max_batch_size,
        most=min((limit for limit in limits if limit is not None), default=None),
        profiles=max(1, len(recipe.profiles)) if by_engine else None,
        cuda_graphs=by_engine and bool(recipe.tensorrt.get("cuda_graph")),
        decoupled=part == "stream",
    )


def of_model(recipe: Recipe, facts: ModelFacts) -> About | None:
    """Return the description (`About`) of the fetched model; None if its inputs are not known or it generates text."""
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


def _sizes(profiles: Sequence[Profile]) -> dict[str, tuple[int, int]]:
    """Return for each axis the smallest and the largest size that any profile takes."""
    axes = {axis for profile in profiles for axis in profile}
    ranges = {axis: [profile[axis] for profile in profiles if axis in profile] for axis in axes}
    return {
        axis: (min(each.min for each in extents), max(each.max for each in extents)) for axis, extents in ranges.items()
    }


def _batch(recipe: Recipe, facts: ModelFacts) -> int | None:
    """Return the max_batch_size that the package will have; None where only the exported graph can tell its value."""
    axis = (next(iter(facts.axes.values())) or (0,))[0]
    if not isinstance(axis, str) or not is_batch(axis):
        return 0
    outputs = [shape for _, shape in facts.outputs.values()]
    if any(shape is None or shape[:1] != (axis,) for shape in (*facts.axes.values(), *outputs)):
        return None  # an axis of an output may have no name here; the exported graph has all names
    return greatest(profiles(recipe, facts)).get(axis)


def _tensor(kind: str | None, shape: Axes | None, *, batch: int | None) -> ConfigTensor:
    if batch is None or shape is None:
        return ConfigTensor(TYPES.get(kind or ""))
    row = shape[1:] if batch else shape
    dims = tuple(size if isinstance(size, int) else -1 for size in row)
    axes = tuple(size if isinstance(size, str) else None for size in row)
    # Triton has no tensors without dimensions: an output of one number per row has the dims [1].
    return ConfigTensor(TYPES.get(kind or ""), dims or None, axes=axes)
