"""Bench inputs: random tensors of one exact shape, with masks that are 1 everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.inputs import index_ranges, random_inputs, synthetic, token_rows
from engine.kit.inputs.token_rows import Vocabulary
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.recipe.schema import Range
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Tensors = Mapping[str, np.ndarray]

_SEED = 22
_OTHER = 128
"""The extent of a dynamic axis without a profile: a usual number of tokens."""


def draw(model: onnx.ModelProto, axes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return random inputs for a model, equal in every run; `axes` maps each dynamic axis to its extent.

    Raises StepError where `axes` lacks a dynamic axis of the model, or names an axis that the model does not have.
    """
    import numpy as np

    specs = onnx_files.inputs(model)
    _refuse_misfits(specs, axes)
    ranges = index_ranges.of(model)
    if token_rows.are_tokens(specs):
        batch, length = synthetic.shape(specs["input_ids"], axes, first=1, other=1)
        return _text(specs, random_inputs.vocabulary(specs, ranges), batch=batch, length=length)
    profile = {axis: Range(min=extent, opt=extent, max=extent) for axis, extent in axes.items()}
    inputs = next(iter(random_inputs.tensors(specs, ranges, [profile], largest=math.inf)))
    return {name: np.ones_like(array) if "mask" in name.lower() else array for name, array in inputs.items()}


def usual_axes(model: onnx.ModelProto, profile: Mapping[str, int]) -> dict[str, int]:
    """Return the extent of each dynamic axis of a model: the profile's, else 1 for a first axis and 128 for others."""
    axes: dict[str, int] = {}
    for spec in onnx_files.inputs(model).values():
        for place, axis in enumerate(spec.shape):
            if isinstance(axis, str):
                axes[axis] = profile.get(axis, _OTHER if place else 1)
    return axes


def prompts(model: onnx.ModelProto, axes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return seeded `input_ids` and `attention_mask`, [batch, sequence], as the prompts of a model that generates text.

    All dynamic axes besides `batch` and `sequence` get their extents from the extents of `batch` and `sequence`. Raises
    StepError where `axes` is not exactly `batch` and `sequence`.
    """
    rows = {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")}
    _refuse_misfits(rows, axes)
    vocabulary = random_inputs.vocabulary(rows, index_ranges.of(model))
    return _text(rows, vocabulary, batch=axes["batch"], length=axes["sequence"])


def _text(specs: Mapping[str, Input], vocabulary: Vocabulary, *, batch: int, length: int) -> dict[str, np.ndarray]:
    """Return a batch of random rows of one length, as the tensors that a text model takes."""
    rows = synthetic.rows(_SEED, vocabulary, [length] * batch)
    return token_rows.fit(token_rows.batch(rows, pad=vocabulary.pad), specs)


def _refuse_misfits(specs: Mapping[str, Input], axes: Mapping[str, int]) -> None:
    """Raise StepError where `axes` lacks a dynamic axis of the inputs, or names an axis that is not dynamic."""
    dynamic = {axis for value in specs.values() for axis in value.shape if isinstance(axis, str)}
    unknown, open_ended = sorted(set(axes) - dynamic), sorted(dynamic - set(axes))
    if not unknown and not open_ended:
        return
    shapes = [f"{name}: {lists.extents(value.shape)}" for name, value in specs.items()]
    example = ", ".join(f"{axis}: {axes.get(axis, 1)}" for axis in sorted(dynamic)) or "nothing: every axis is fixed"
    what = (
        f"bench.shapes names an axis that the model does not have: {', '.join(unknown)}"
        if unknown
        else f"bench.shapes and profiles leave open how long {', '.join(open_ended)} is"
    )
    raise StepError(what, shapes, f"a shape of this model says {example}")
