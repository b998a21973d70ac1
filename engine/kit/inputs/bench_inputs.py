"""Bench inputs: random tensors of one exact shape, with masks that are 1 everywhere and rows of full length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.inputs import index_ranges, random_inputs, row_lengths, synthetic, token_rows
from engine.kit.inputs.token_rows import Vocabulary
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.recipe.values import Range
from engine.runtimes import axes
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np
    import onnx

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
    full = row_lengths.longest(specs, {name: array.shape for name, array in inputs.items()})
    lengths = {name: np.full_like(inputs[name], length) for name, length in full.items()}
    masks = {name: np.ones_like(array) for name, array in inputs.items() if "mask" in name.lower()}
    stated = random_inputs.as_stated(inputs, values or {})
    return {**inputs, **lengths, **masks, **stated}


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
