"""Bench inputs: random tensors of one exact shape, with masks that are 1 everywhere and rows of full length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import index_ranges, random_inputs, synthetic, token_rows
from engine.kit.inputs.token_rows import Vocabulary
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.recipe.values import Range
from engine.runtimes import axes
from engine.runtimes import profiles as runtime_profiles
from engine.text import lists

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import onnx

    from engine.recipe.schema import Recipe
    from engine.recipe.values import Profile

    Tensors = Mapping[str, np.ndarray]

_SEED = 22
_OTHER = 128
"""The extent of a dynamic axis without a profile: a usual number of tokens."""


def draw(
    model: onnx.ModelProto, sizes: Mapping[str, int], values: Mapping[str, Sequence[int]] | None = None
) -> dict[str, np.ndarray]:
    """Return random inputs for a model, equal in every run; `sizes` maps each dynamic axis to its extent.

    `values` are the values of inputs that a profile states, by the name of the input.

    Raises StepError where `sizes` lacks a dynamic axis of the model, or names an axis that the model does not have.
    """
    import numpy as np

    specs = onnx_files.inputs(model)
    extents = axes.by_name(sizes, axes.shapes(specs))
    _refuse_misfits(specs, extents)
    ranges = index_ranges.of(model)
    if token_rows.are_tokens(specs):
        batch, length = synthetic.shapes(specs, extents, first=1, other=1)["input_ids"]
        return _text(specs, random_inputs.vocabulary(specs, ranges), batch=batch, length=length)
    profile = {axis: Range(min=extent, opt=extent, max=extent) for axis, extent in extents.items()}
    inputs = next(iter(random_inputs.tensors(specs, ranges, [profile], largest=math.inf)))
    full = random_inputs.full_rows(specs, {name: array.shape for name, array in inputs.items()})
    lengths = {name: np.full_like(inputs[name], length) for name, length in full.items()}
    masks = {name: np.ones_like(array) for name, array in inputs.items() if "mask" in name.lower()}
    stated = random_inputs.as_stated(inputs, values or {})
    return {**inputs, **lengths, **masks, **stated}


def stated_shapes(recipe: Recipe) -> list[dict[str, int]]:
    """Return the shapes of `bench` that have sizes, or else the optima of the profiles; [{}] without both.

    An axis that a shape does not name gets its extent in the first profile.
    """
    usual = optima(recipe)
    shapes = recipe.bench.shapes if recipe.bench else ()
    named = [{**usual[0], **shape.axes} for shape in shapes if shape.samples is None]
    return list({tuple(sorted(axes.items())): axes for axes in named or usual}.values())


def optima(recipe: Recipe) -> list[dict[str, int]]:
    """Return the optimum of each axis in each profile; [{}] for a recipe without profiles."""
    return [{axis: int(extent.opt) for axis, extent in profile.items()} for profile in recipe.profiles] or [{}]


def usual_extents(inputs: Mapping[str, Input], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the extent of each dynamic axis of inputs: that in `sizes`, else 1 for a first axis, 128 for others."""
    shapes = axes.shapes(inputs)
    extents = axes.by_name(sizes, shapes)
    first = {shape[0] for shape in shapes.values() if shape}
    return {axis: extents.get(axis, 1 if axis in first else _OTHER) for axis in axes.free(shapes)}


def usual_prompt(sizes: Mapping[str, int], longest: int | None) -> dict[str, int]:
    """Return the size of a usual prompt: that in `sizes`, else a row of 128 tokens, or of `longest` if that is less."""
    sequence = sizes.get("sequence", min(_OTHER, longest or _OTHER))
    return {"batch": sizes.get("batch", 1), "sequence": sequence}


def prompts(model: onnx.ModelProto, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return seeded `input_ids` and `attention_mask`, [batch, sequence], as the prompts of a model that generates text.

    All dynamic axes besides `batch` and `sequence` get their extents from the extents of `batch` and `sequence`. Raises
    StepError where `sizes` is not exactly `batch` and `sequence`.
    """
    rows = {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")}
    sizes = axes.by_name(sizes, axes.shapes(rows))
    _refuse_misfits(rows, sizes)
    vocabulary = random_inputs.vocabulary(rows, index_ranges.of(model))
    return _text(rows, vocabulary, batch=sizes["batch"], length=sizes["sequence"])


def _text(specs: Mapping[str, Input], vocabulary: Vocabulary, *, batch: int, length: int) -> dict[str, np.ndarray]:
    """Return a batch of random rows of one length, as the tensors that a text model takes."""
    rows = synthetic.rows(_SEED, vocabulary, [length] * batch)
    return token_rows.fit(token_rows.batch(rows, pad=vocabulary.pad), specs)


def _refuse_misfits(specs: Mapping[str, Input], sizes: Mapping[str, int]) -> None:
    """Raise StepError where `sizes` lacks a dynamic axis of the inputs, or names an axis that is not dynamic."""
    dynamic = set(axes.free(axes.shapes(specs)))
    unknown, open_ended = sorted(set(sizes) - dynamic), sorted(dynamic - set(sizes))
    if not unknown and not open_ended:
        return
    shapes = [f"{name}: {lists.extents(value.shape)}" for name, value in specs.items()]
    example = ", ".join(f"{axes.as_key(axis)}: {sizes.get(axis, 1)}" for axis in sorted(dynamic))
    what = (
        f"bench.shapes names an axis that the model does not have: {', '.join(unknown)}"
        if unknown
        else f"bench.shapes and profiles leave open how long {', '.join(open_ended)} is"
    )
    hint = f"a shape of this model says {{{example}}}" if dynamic else "leave bench.shapes out: every axis is fixed"
    raise StepError(what, shapes, hint)


def usual_profiles(graph: onnx.ModelProto, checkpoint: Path | None) -> tuple[Profile, ...]:
    """Return the profile that `recipe check` assumes for a recipe without profiles; empty for an ONNX file."""
    if checkpoint is None or checkpoints.kind(checkpoint) == "onnx":
        return ()
    free = axes.free(axes.shapes(onnx_files.inputs(graph)))
    return runtime_profiles.usual(free, checkpoints.max_sequence(checkpoint))


def usual_shape(graph: onnx.ModelProto, checkpoint: Path | None, *, new_tokens: int | None) -> dict[str, int]:
    """Return the shape to measure for a recipe without shapes and profiles: `opt` of the usual profile.

    A model that generates `new_tokens` tokens gets a usual prompt. The result is empty for a model without free axes.
    """
    if new_tokens is not None:
        longest = None if checkpoint is None else checkpoints.max_sequence(checkpoint)
        return usual_prompt({}, None if longest is None else max(1, longest - new_tokens))
    return {axis: extent.opt for profile in usual_profiles(graph, checkpoint) for axis, extent in profile.items()}


def of_call(
    graph: onnx.ModelProto, sizes: Mapping[str, int], values: Mapping[str, tuple[int, ...]] | None, new: int | None
) -> dict[str, np.ndarray]:
    """Return the inputs of a call; `new` is the number of tokens that the call generates, None for no such call."""
    return draw(graph, sizes, values) if new is None else prompts(graph, sizes)
