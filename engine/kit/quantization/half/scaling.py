"""Scaling: a MatMul that would overflow in fp16 gets smaller factors, and a Mul scales its product back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, topology
from engine.kit.quantization.half import half_choice
from engine.kit.quantization.half.ranges import Ranges
from engine.kit.quantization.half.signatures import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import onnx

_SMALL = 1.0
"""Lower limit of the largest absolute value in a MatMul's input after the input was divided for fp16.

If the largest number of a divided input were smaller, the small numbers of the input would lose bits in fp16.
"""
_SMALL_WEIGHT = 0.125
"""Lower limit of the largest absolute value in a MatMul's weight after the weight was divided for fp16.

The limit for weights is lower than the limit for inputs, because the absolute values in a weight span a narrower range.
"""


def scale_products(model: onnx.ModelProto, measured: Ranges, kind: Kind) -> list[str]:
    """Divide the factors of each MatMul that overflows, and multiply its product in return; return the MatMuls' names.

    The divisors are powers of two, which are exact, so the float32 model computes the same numbers. The values of a
    trained T5 model overflow in fp16 without scaling, and TensorRT-RTX has no float32 matrix products for SM75. Every
    node of the graph must have a name; `model` is changed. A MatMul is not scaled where its factors would become too
    small, or are not finite.
    """
    from onnx import helper

    limit = half_choice.largest_limit(kind)
    weights = topology.initializers(model.graph)
    scaled: list[str] = []
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        powers = _powers(node, measured, limit) if node.op_type == "MatMul" and node.input[1] in weights else (0, 0)
        if not any(powers):
            nodes.append(node)
            continue
        scaled.append(node.name)
        source, result = node.input[0], node.output[0]
        small, large = _constant(model, -powers[0]), _constant(model, sum(powers))
        if powers[1]:
            node.input[1] = _smaller(model, weights[node.input[1]], powers[1])
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


def _powers(node: onnx.NodeProto, measured: Ranges, limit: float) -> tuple[int, int]:
    """Return the exponents of the powers of two by which the input and the weight of a MatMul are divided.

    Both exponents are 0 where scaling is not needed or cannot help.

    The MatMul's input is divided in preference to its weight, because samples show the input's size, and because an
    input beyond the limit of the half precision must be divided in any case. The weight is divided where dividing the
    input is not enough.
    """
    source, weight, product = (measured.largest.get(name, 0.0) for name in (*node.input[:2], node.output[0]))
    largest = max(source, weight, product)
    if not limit < largest < math.inf or not source or not weight:
        return 0, 0
    down = max(0, math.ceil(math.log2(source / limit)))
    own = max(0, math.ceil(math.log2(weight / limit)))
    missing = math.ceil(math.log2(product / limit)) - down - own if product > limit else 0
    more = min(max(0, missing), max(0, math.floor(math.log2(source / _SMALL)) - down))
    rest = max(0, missing - more)
    down, own = down + more, own + rest
    return (down, own) if weight / 2**own >= _SMALL_WEIGHT or not own else (0, 0)


def _smaller(model: onnx.ModelProto, weight: onnx.TensorProto, power: int) -> str:
    """Store a copy of a weight, divided by a power of two, and return its name; other nodes may read the weight."""
    import numpy as np

    name = f"{weight.name}_over_two_to_the_{power}"
    return _stored(model, name, lambda: mapped_weights.array(weight) * np.float32(2.0**-power))


def _constant(model: onnx.ModelProto, power: int) -> str:
    """Return the name of a stored power of two; the first call stores the number."""
    import numpy as np

    name = f"two_to_the_{power}".replace("-", "minus_")
    return _stored(model, name, lambda: np.array(2.0**power, np.float32))


def _stored(model: onnx.ModelProto, name: str, values: Callable[[], np.ndarray]) -> str:
    """Return `name`, and add an initializer of this name to the graph where the graph lacks the initializer."""
    if all(tensor.name != name for tensor in model.graph.initializer):
        model.graph.initializer.append(mapped_weights.tensor_of(values(), name))
    return name
