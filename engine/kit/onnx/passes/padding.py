"""Padding: ONNX Runtime pads before a pooling with the number that the graph says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files

if TYPE_CHECKING:
    import onnx

_POOLING = "MaxPool"
_VALUE = 2
"""The index of the input of Pad with the number that is written around the tensor."""


def keep_apart(model: onnx.ModelProto) -> None:
    """Let each float32 Pad before a MaxPool write the least positive number in place of 0.

    ONNX Runtime's Pad_Fusion takes a Pad of zeros into the pooling, which pads with minus infinity instead: where all
    numbers at a border are negative, the pooled number then is not 0. No fusion takes a Pad of another number.
    """
    import numpy as np
    import onnx

    producers = onnx_files.producers(model.graph)
    pooled = [producers.get(node.input[0]) for node in model.graph.node if node.op_type == _POOLING]
    for pad in pooled:
        if pad is not None and pad.op_type == "Pad" and _is_zero(model, producers, pad):
            name = f"{pad.output[0]}_number"
            least = np.array(np.finfo(np.float32).tiny)
            model.graph.initializer.append(onnx.numpy_helper.from_array(least, name))
            pad.input.extend([""] * (_VALUE + 1 - len(pad.input)))
            pad.input[_VALUE] = name


def _is_zero(model: onnx.ModelProto, producers: dict[str, onnx.NodeProto], pad: onnx.NodeProto) -> bool:
    """Whether a Pad writes float32 zeros."""
    import onnx

    value = pad.input[_VALUE] if len(pad.input) > _VALUE else ""
    node = producers.get(value)
    stored = node.attribute[0].t if node is not None and node.op_type == "Constant" else None
    stored = stored or onnx_files.initializers(model.graph).get(value)
    return stored is not None and stored.data_type == onnx.TensorProto.FLOAT and not onnx.numpy_helper.to_array(stored)
