"""Bench inputs: random tensors of exactly one shape, with nothing masked out."""

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

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Tensors = Mapping[str, np.ndarray]

_SEED = 22


def draw(model: onnx.ModelProto, axes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return seeded inputs for a model whose dynamic axes have these extents: token ids, or whatever it takes.

    Raises StepError where an axis has no extent, or the model has no such axis.
    """
    import numpy as np

    wanted = onnx_files.inputs(model)
    _refuse_misfits(wanted, axes)
    ranges = index_ranges.of(model)
    if token_rows.are_tokens(wanted):
        batch, length = synthetic.shape(wanted["input_ids"], axes, first=1, other=1)
        return _text(wanted, random_inputs.vocabulary(wanted, ranges), batch=batch, length=length)
    profile = {axis: Range(min=extent, opt=extent, max=extent) for axis, extent in axes.items()}
    inputs = next(iter(random_inputs.tensors(wanted, ranges, [profile], largest=math.inf)))
    return {name: np.ones_like(array) if "mask" in name.lower() else array for name, array in inputs.items()}


def prompts(model: onnx.ModelProto, axes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return seeded `input_ids` and `attention_mask`, [batch, sequence], for the graph that reads a prompt.

    Its other axes follow from these. Raises StepError as `draw` does.
    """
    rows = {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")}
    _refuse_misfits(rows, axes)
    vocabulary = random_inputs.vocabulary(rows, index_ranges.of(model))
    return _text(rows, vocabulary, batch=axes["batch"], length=axes["sequence"])


def _text(specs: Mapping[str, Input], vocabulary: Vocabulary, *, batch: int, length: int) -> dict[str, np.ndarray]:
    """Return a batch of random rows of one length, as the tensors that a text model takes."""
    rows = synthetic.rows(_SEED, vocabulary, [length] * batch)
    return token_rows.fit(token_rows.batch(rows, pad=vocabulary.pad), specs)


def _refuse_misfits(wanted: Mapping[str, Input], axes: Mapping[str, int]) -> None:
    dynamic = {axis for value in wanted.values() for axis in value.shape if isinstance(axis, str)}
    unknown, open_ended = sorted(set(axes) - dynamic), sorted(dynamic - set(axes))
    if not unknown and not open_ended:
        return
    shapes = [f"{name}: {' x '.join(map(str, value.shape)) or 'a number'}" for name, value in wanted.items()]
    said = ", ".join(f"{axis}: {axes.get(axis, 1)}" for axis in sorted(dynamic)) or "nothing: every axis is fixed"
    what = (
        f"bench.shapes names an axis that the model does not have: {', '.join(unknown)}"
        if unknown
        else f"bench.shapes and profiles leave open how long {', '.join(open_ended)} is"
    )
    raise StepError(what, shapes, f"a shape of this model says {said}")
