"""Attention bias: fused attention adds one bias that all layers share, in place of a mask that each layer reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.onnx.surgery import TensorNames
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

HIDDEN = -1e38
"""The number that is added in float32 to the scores of a hidden position.

The number swallows every score, as the smallest float32 does in PyTorch, so a row whose positions are all hidden gets
uniform weights. Unlike the smallest float32, it stays finite where a kernel multiplies it by log2(e), to take powers of
2. In fp16, `overflow.saturate` turns it into -3e4. The sum of -3e4 and a score is finite as well, but kernels for
GPUs compute it in float32, so -3e4 swallows no score: a row whose positions are all hidden then gets the weights of the
row without a mask.
"""

_MASK, _PAST, _BIAS = 3, 4, 5
"""The indices of the inputs `mask_index`, `past` and `attention_bias` of ONNX Runtime's operator Attention."""
_RAW = 2
"""The number of axes of a raw mask: batch and sequence."""


def from_masks(model: ir.Model) -> int:
    """Turn raw masks of fused attention into biases [batch, 1, sequence, sequence]; return how many nodes read one.

    A raw mask has the shape [batch, sequence], and 0 for a hidden position. Six nodes before the first layer compute
    the bias of each mask. Nodes with a mask of another shape, with a past or with a bias of their own stay as they are.
    `model` is changed.
    """
    biases: dict[ir.Value, ir.Value] = {}
    masked = [(node, mask) for node in model.graph if (mask := _raw_mask(node)) is not None]
    for node, mask in masked:
        if mask not in biases:
            biases[mask] = _bias(model, mask, node)
        node.resize_inputs(_BIAS + 1)
        node.replace_input_with(_MASK, None)
        node.replace_input_with(_BIAS, biases[mask])
    casts = [cast for mask in biases if (cast := _cast(mask)) is not None and surgery.is_unread(mask)]
    model.graph.remove(casts, safe=True)
    return len(masked)


def _raw_mask(node: ir.Node) -> ir.Value | None:
    """Return the mask [batch, sequence] of a fused attention that has no past and no bias; else None."""
    if node.op_type != "Attention" or node.domain != CONTRIBUTED:
        return None
    mask, past, bias = [*node.inputs, *[None] * (_BIAS + 1)][_MASK : _BIAS + 1]
    if mask is None or past is not None or bias is not None:
        return None
    shape = _source(mask).shape or mask.shape
    return mask if shape is not None and len(shape) == _RAW else None


def _cast(mask: ir.Value) -> ir.Node | None:
    """Return the Cast that gives a mask in the type that attention reads; None where another node gives the mask."""
    producer = mask.producer()
    return producer if producer is not None and producer.op_type == "Cast" else None


def _source(mask: ir.Value) -> ir.Value:
    """Return the value in front of the Cast that gives a mask; the mask itself where no Cast gives it."""
    cast = _cast(mask)
    return mask if cast is None or cast.inputs[0] is None else cast.inputs[0]


def _bias(model: ir.Model, mask: ir.Value, reader: ir.Node) -> ir.Value:
    """Add the nodes that compute the bias of a mask in front of a reader, and return the bias.

    Each row of the bias has the number for each position. The sum with a column of zeros makes as many rows as there
    are positions, without a node that computes a shape.
    """
    import numpy as np
    import onnx_ir as ir

    names = TensorNames(model)

    def stored(what: str, values: np.ndarray) -> ir.Value:
        return surgery.store(model.graph, names.free(f"attention_bias_{what}"), values)

    def computed(operator: str, what: str, *inputs: ir.Value, **attributes: int) -> ir.Value:
        name = names.free(f"attention_bias{what}")
        node = surgery.node(operator, inputs, name, name, **attributes)
        model.graph.insert_before(reader, node)
        return node.outputs[0]

    zero, lowest = stored("zero", np.array(0, np.float32)), stored("lowest", np.array(HIDDEN, np.float32))
    visible = computed("Cast", "_visible", _source(mask), to=int(ir.DataType.BOOL))
    hidden = computed("Where", "_hidden", visible, zero, lowest)
    zeros = computed("Mul", "_zeros", hidden, zero)
    row = computed("Unsqueeze", "_row", hidden, stored("row_axes", np.array([1, 2], np.int64)))
    column = computed("Unsqueeze", "_column", zeros, stored("column_axes", np.array([1, 3], np.int64)))
    return computed("Add", "", row, column)
