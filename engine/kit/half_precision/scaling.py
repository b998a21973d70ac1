"""Scaling: products of matrices that would overflow in fp16, computed on smaller numbers and made large again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.kit.half_precision import half_choice
from engine.kit.half_precision.ranges import Ranges
from engine.kit.half_precision.signatures import Kind

if TYPE_CHECKING:
    import numpy as np
    import onnx

_SMALL = 1.0
"""How large the largest input may become at least: below, what is small beside it would lose bits."""


def scale_products(model: onnx.ModelProto, seen: Ranges, kind: Kind) -> list[str]:
    """Divide what a MatMul with a weight takes by a power of two where it overflows, and multiply what it gives.

    Powers of two are exact, so the float32 model computes what it did before. Only so may a trained T5 multiply in fp16
    at all; TensorRT-RTX has no float32 products for SM75. The model, whose nodes have names, is changed; returned are
    the names of those MatMuls. Left alone is what would have to become smaller than 1, and what is not finite.
    """
    from onnx import helper

    limit = half_choice.largest_limit(kind)
    weights = {tensor.name for tensor in model.graph.initializer}
    scaled: list[str] = []
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        power = _power(node, seen, limit) if node.op_type == "MatMul" and node.input[1] in weights else 0
        if not power:
            nodes.append(node)
            continue
        scaled.append(node.name)
        source, result = node.input[0], node.output[0]
        small, large = _constant(model, -power), _constant(model, power)
        node.input[0], node.output[0] = f"{node.name}_scaled", f"{node.name}_product"
        nodes += [
            helper.make_node("Mul", [source, small], [node.input[0]], f"{node.name}_down"),
            node,
            helper.make_node("Mul", [node.output[0], large], [result], f"{node.name}_up"),
        ]
    if scaled:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return scaled


def _power(node: onnx.NodeProto, seen: Ranges, limit: float) -> int:
    """Return the power of two to divide by; 0 for a product that needs none, or would not be helped."""
    taken, given = seen.largest.get(node.input[0], 0.0), seen.largest.get(node.output[0], 0.0)
    largest = max(taken, given)
    if not limit < largest < math.inf or not taken or seen.largest.get(node.input[1], 0.0) > limit:
        return 0
    power = math.ceil(math.log2(largest / limit))
    return power if taken / 2**power >= _SMALL else 0


def _constant(model: onnx.ModelProto, power: int) -> str:
    """Return the name of a stored power of two, made when it is first asked for."""
    import numpy as np
    from onnx import numpy_helper

    name = f"two_to_the_{power}".replace("-", "minus_")
    if all(tensor.name != name for tensor in model.graph.initializer):
        value: np.ndarray = np.array(2.0**power, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return name
