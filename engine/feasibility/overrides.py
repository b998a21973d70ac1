"""Overrides of Triton's configuration in a recipe: a wrong override is refused before the build, with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.feasibility import triton
from engine.feasibility.facts import Axes, ModelFacts
from engine.feasibility.shapes import profiles
from engine.feasibility.triton.fault import About, ConfigTensor, Fault
from engine.recipe.model_config import GRAPH_PARTS
from engine.runtimes import registry, triton_images
from engine.runtimes.backends import Backend
from engine.runtimes.profiles import greatest
from engine.runtimes.triton_tensors import TYPES, is_batch
from engine.text import lists, suggestions

if TYPE_CHECKING:
    from engine.errors import RecipeError
    from engine.recipe.load import LoadedRecipe
    from engine.recipe.schema import Recipe
    from engine.recipe.values import Profile

_NUMBERED = re.compile(r"unk__\d+|.*_dim_\d+|.*dynamic_axes.*")
"""Names that tf2onnx, onnx's shape inference and PyTorch's exporter give to axes without a name."""
_USUAL = {"transformers": "int64", "timm": "float32"}
"""The data type of a model's inputs by the kind of checkpoint: int64 for token ids, float32 for images."""


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for an override that Triton would refuse; the model's files are not read."""
    runtime = registry.of(loaded.recipe)
    for part, path, overrides in sections(loaded.recipe):
        if overrides and not runtime.loads_in_triton:
            what = f"`{next(iter(overrides))}` is for Triton, and the package is {runtime.not_triton}"
            raise loaded.error(what, *path, next(iter(overrides)), hint="leave it out", at_key=True)
        if part != "model":
            _refuse_missing_part(loaded, part, path)
        _check(loaded, path, overrides, of_recipe(loaded.recipe, part))


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for an override that does not fit the fetched model."""
    about = of_model(loaded.recipe, facts)
    if about is None:
        return
    _refuse_fixed_batch(loaded, "input", facts.axes)
    _refuse_fixed_batch(loaded, "output", {name: axes for name, (_, axes) in facts.outputs.items() if axes is not None})
    _refuse_own_axes(loaded, facts)
    for part, path, overrides in sections(loaded.recipe):
        if part == "model":
            _check(loaded, path, overrides, about)


def _refuse_fixed_batch(loaded: LoadedRecipe, kind: str, axes: Mapping[str, Sequence[int | str]]) -> None:
    """Raise RecipeError for a max_batch_size where the first axis of an input or output has a fixed size."""
    batch = loaded.recipe.package.triton.max_batch_size
    for name, shape in axes.items():
        if batch and not (shape and isinstance(shape[0], str)):
            what = f"the model takes no batches of {batch}: the first axis of its {kind} {name} is not free"
            facts = [f"{name}: {lists.extents(shape)}"]
            raise loaded.error(what, "package", "triton", "max_batch_size", facts=facts, hint="use max_batch_size: 0")


def _refuse_own_axes(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for a max_batch_size where an output begins with an axis of its own, such as a number of boxes.

    An exporter may number axes that nobody named; `validate` measures whether such an axis is the batch.
    """
    batch, inputs = loaded.recipe.package.triton.max_batch_size, list(facts.axes.values())
    leading = {shape[0] for shape in inputs if shape}
    for name, (_, shape) in facts.outputs.items():
        axis = shape[0] if shape else None
        if batch and isinstance(axis, str) and axis not in {*leading, f"{name}_0"} and not _NUMBERED.fullmatch(axis):
            what = f"the model takes no batches of {batch}: the output {name} begins with an axis of its own, `{axis}`"
            rows = sorted(str(each) for each in leading)
            facts_of_axes = [f"{name}: {lists.extents(shape or ())}", f"the inputs begin with: {', '.join(rows)}"]
            hint = f"use max_batch_size: 0; or, if the axis is the batch, name it `{rows[0]}` in the ONNX file"
            raise loaded.error(what, "package", "triton", "max_batch_size", facts=facts_of_axes, hint=hint)


def _check(loaded: LoadedRecipe, path: tuple[str | int, ...], overrides: Mapping[str, Any], about: About) -> None:
    try:
        triton.check(overrides, about)
    except Fault as fault:
        raise _error(loaded, path, fault) from None


def _error(loaded: LoadedRecipe, path: tuple[str | int, ...], fault: Fault) -> RecipeError:
    return loaded.error(fault.what, *path, *fault.path, facts=fault.facts, hint=fault.hint, at_key=fault.at_key)


def _refuse_missing_part(loaded: LoadedRecipe, part: str, path: tuple[str | int, ...]) -> None:
    """Raise RecipeError for overrides of a part that the package will not contain."""
    triton_section, task = loaded.recipe.package.triton, loaded.recipe.model.task
    if part == "tokenizer" and not triton_section.tokenizer:
        what, hint = "the package has no tokenizer: the recipe says tokenizer: false", "leave one of them out"
        raise loaded.error(what, *path, hint=hint, at_key=True)
    parts = tasks.find(task).parts if task is not None else None
    if parts is not None and part not in parts:
        what = f"a package for {task} has no model `{part}`"
        raise loaded.error(what, *path, hint=suggestions.hint(part, parts), at_key=True)


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
