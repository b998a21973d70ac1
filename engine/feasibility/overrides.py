"""Overrides of Triton's configuration in a recipe: a wrong override is refused before the build, with its line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.feasibility import triton
from engine.feasibility.facts import ModelFacts
from engine.feasibility.triton import known
from engine.feasibility.triton.fault import About, Fault
from engine.runtimes import registry
from engine.text import lists, suggestions

if TYPE_CHECKING:
    from engine.errors import RecipeError
    from engine.recipe.load import LoadedRecipe

_NUMBERED = re.compile(r"unk__\d+|.*_dim_\d+|.*dynamic_axes.*")
"""Names that tf2onnx, onnx's shape inference and PyTorch's exporter give to axes without a name."""


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for an override that Triton would refuse.

    `check` reads only the recipe, not the model's files.
    """
    runtime = registry.of(loaded.recipe)
    for part, path, overrides in known.sections(loaded.recipe):
        if overrides and not runtime.loads_in_triton:
            what = f"`{next(iter(overrides))}` is for Triton, and the package is {runtime.not_triton}"
            raise loaded.error(what, *path, next(iter(overrides)), hint="leave it out", at_key=True)
        if part != "model":
            _refuse_missing_part(loaded, part, path)
        _check(loaded, path, overrides, known.of_recipe(loaded.recipe, part))


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for an override that does not fit the fetched model."""
    about = known.of_model(loaded.recipe, facts)
    if about is None:
        return
    _refuse_fixed_batch(loaded, "input", facts.axes)
    _refuse_fixed_batch(loaded, "output", {name: axes for name, (_, axes) in facts.outputs.items() if axes is not None})
    _refuse_own_axes(loaded, facts)
    for part, path, overrides in known.sections(loaded.recipe):
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
