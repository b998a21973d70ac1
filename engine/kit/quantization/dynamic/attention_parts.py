"""Attention parts: ONNX Runtime's fused attention becomes three MatMuls and ONNX's own Attention, which is faster."""

# The fused operator multiplies the input by one weight for queries, keys and values, and then copies each of them into
# an order by heads. Its int8 form takes one scale for its input and adds its bias apart. ONNX's own Attention (opset
# 23) reads queries, keys and values in the order in which MatMuls give them. docs/adr/0033 has the reasons.

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.onnx.surgery import TensorNames
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import onnx_ir as ir

OPSET = 23
"""The first opset with the operator Attention."""

_PARTS = ("queries", "keys", "values")
_KNOWN = {"num_heads": None, "mask_filter_value": None, "scale": None, "unidirectional": 0, "do_rotary": 0,
          "past_present_share_buffer": 0, "rotary_embedding_dim": 0}  # fmt: skip
"""The attributes of a fused attention that can be split: None for any value, otherwise the only value."""
_INPUTS = 4
"""The number of inputs that a fused attention may have: rows, weight, bias and mask."""


def split(model: ir.Model) -> int:
    """Split every fused attention that needs no more than ONNX's own Attention has; return how many were split.

    A fused attention is left as it is if it has a past, biases of its scores, rotated positions, or a mask that does
    not have the shape [batch, sequence], or if it is causal, because then positions that see no other position would
    give other numbers. The model must have opset 23.
    """
    writer = _Writer(model)
    nodes = [node for node in model.graph if node.op_type == "Attention" and node.domain == CONTRIBUTED]
    fit = [node for node in nodes if _can_be_split(node)]
    for node in fit:
        writer.split(node)
    return len(fit)


class _Writer:
    """Writes the parts of fused attentions into a graph; masks that several attentions read are converted once."""

    def __init__(self, model: ir.Model) -> None:
        self.graph = model.graph
        self.names = TensorNames(model)
        self.masks: dict[ir.Value, ir.Value] = {}
        self.thirds: dict[ir.Value, list[ir.Value]] = {}

    def split(self, node: ir.Node) -> None:
        """Put three MatMuls, their biases and an Attention in the place of a fused attention."""
        rows, weight, bias = node.inputs[:3]
        mask = node.inputs[3] if len(node.inputs) == _INPUTS else None
        if rows is None or weight is None or bias is None:
            raise ValueError(f"{node.name} lacks its input, its weight or its bias")
        heads = node.attributes.get_int("num_heads", 0)
        new: list[ir.Node] = []
        parts = []
        names = [self.names.free(f"{node.outputs[0].name}_{part}") for part in _PARTS]
        for name, own_weight, own_bias in zip(names, self.stored(weight, 1), self.stored(bias, 0), strict=True):
            product = surgery.node("MatMul", [rows, own_weight], self.names.free(f"{name}_product"), f"{name}_MatMul")
            biased = surgery.node("Add", [*product.outputs, own_bias], name, f"{name}_Add")
            new += [product, biased]
            parts.append(biased.outputs[0])
        scale = node.attributes.get_float("scale", 0.0)
        attributes = {"q_num_heads": heads, "kv_num_heads": heads, **({"scale": scale} if scale else {})}
        if mask is not None:
            parts.append(self.mask(mask, node))
        output = node.outputs[0].name or ""
        surgery.replace(node, [*new, surgery.node("Attention", parts, output, node.name or "", **attributes)])
        surgery.drop_unread([weight, bias])

    def stored(self, whole: ir.Value, axis: int) -> list[ir.Value]:
        """Return the thirds of a stored weight or bias; those that several attentions share are stored once."""
        import numpy as np

        if whole not in self.thirds:
            thirds = zip(_PARTS, np.split(surgery.numbers(whole), len(_PARTS), axis=axis), strict=True)
            self.thirds[whole] = [
                surgery.store(self.graph, self.names.free(f"{whole.name}_{part}"), np.ascontiguousarray(third))
                for part, third in thirds
            ]
        return self.thirds[whole]

    def mask(self, mask: ir.Value, node: ir.Node) -> ir.Value:
        """Return a mask [batch, sequence] as booleans [batch, 1, sequence, sequence], as Attention needs it."""
        import numpy as np
        import onnx_ir as ir

        if mask in self.masks:
            return self.masks[mask]
        name = self.names.free(f"{mask.name}_of_attention")
        axes, ones, one = (
            surgery.store(self.graph, self.names.free(f"{name}_{what}"), np.array(numbers, np.int64))
            for what, numbers in (("axes", [1, 2]), ("ones", [1, 1]), ("one", [1]))
        )
        boolean = surgery.node("Cast", [mask], f"{name}_bool", f"{name}_Cast", to=int(ir.DataType.BOOL))
        spread = surgery.node("Unsqueeze", [*boolean.outputs, axes], f"{name}_spread", f"{name}_Unsqueeze")
        length = surgery.node("Shape", [mask], f"{name}_length", f"{name}_Shape", start=1, end=2)
        shape = surgery.node("Concat", [ones, *length.outputs, one], f"{name}_shape", f"{name}_Concat", axis=0)
        whole = surgery.node("Expand", [*spread.outputs, *shape.outputs], name, f"{name}_Expand")
        self.graph.insert_before(node, [boolean, spread, length, shape, whole])
        self.masks[mask] = whole.outputs[0]
        return self.masks[mask]


def _can_be_split(node: ir.Node) -> bool:
    weight, bias = node.inputs[1:3] if len(node.inputs) > 2 else (None, None)  # noqa: PLR2004 - rows, weight, bias
    if weight is None or bias is None or not weight.is_initializer() or not bias.is_initializer():
        return False  # ONNX Runtime has no kernel without a bias
    if surgery.shape(weight)[1] % len(_PARTS):
        return False
    if any(value is not None for value in node.inputs[_INPUTS:]) or any(each.uses() for each in node.outputs[1:]):
        return False
    mask = node.inputs[3] if len(node.inputs) == _INPUTS else None
    if mask is not None and _rank(mask) != 2:  # noqa: PLR2004 - batch and sequence
        return False
    return all(name in _KNOWN and _KNOWN[name] in (None, each.value) for name, each in node.attributes.items())


def _rank(value: ir.Value) -> int | None:
    """Return the number of axes of a value, also behind a Cast; None where it is unknown."""
    producer = value.producer()
    if value.shape is None and producer is not None and producer.op_type == "Cast" and producer.inputs[0] is not None:
        return _rank(producer.inputs[0])
    return None if value.shape is None else len(value.shape)
