"""Scaling: products of matrices that would overflow in fp16, computed on smaller numbers and made large again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.kit.onnx import topology
from engine.kit.quantization.half import half_choice
from engine.kit.quantization.half.ranges import Ranges
from engine.kit.quantization.half.signatures import Kind

if TYPE_CHECKING:
    import numpy as np
    import onnx

_SMALL = 1.0
"""How large the largest input may become at least: below, what is small beside it would lose bits."""
_SMALL_WEIGHT = 0.125
"""The same of a weight, whose numbers spread less."""


def scale_products(model: onnx.ModelProto, seen: Ranges, kind: Kind) -> list[str]:
    """Divide what a MatMul with a weight takes, and the weight, where it overflows, and multiply what it gives.

    By powers of two, which are exact: the float32 model computes what it did before. Only so may a trained T5 multiply
    in fp16 at all; TensorRT-RTX has no float32 products for SM75. The model, whose nodes have names, is changed;
    returned are the names of those MatMuls. Left alone is what would become too small, and what is not finite.
    """
    from onnx import helper

    limit = half_choice.largest_limit(kind)
    weights = topology.initializers(model.graph)
    scaled: list[str] = []
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        powers = _powers(node, seen, limit) if node.op_type == "MatMul" and node.input[1] in weights else (0, 0)
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


def _powers(node: onnx.NodeProto, seen: Ranges, limit: float) -> tuple[int, int]:
    """Return the powers of two by which input and weight are divided; zeros where none is needed, or would not help.

    The input gives way first: it has to where it is itself too large, and its size is known from samples.
    """
    taken, weight, given = (seen.largest.get(name, 0.0) for name in (*node.input[:2], node.output[0]))
    largest = max(taken, weight, given)
    if not limit < largest < math.inf or not taken or not weight:
        return 0, 0
    down = max(0, math.ceil(math.log2(taken / limit)))
    own = max(0, math.ceil(math.log2(weight / limit)))
    missing = math.ceil(math.log2(given / limit)) - down - own if given > limit else 0
    more = min(max(0, missing), max(0, math.floor(math.log2(taken / _SMALL)) - down))
    rest = max(0, missing - more)
    down, own = down + more, own + rest
    return (down, own) if weight / 2**own >= _SMALL_WEIGHT or not own else (0, 0)


def _smaller(model: onnx.ModelProto, weight: onnx.TensorProto, power: int) -> str:
    """Return the name of a weight divided by a power of two: of its own, for others may read the weight itself."""
    import numpy as np
    from onnx import numpy_helper

    name = f"{weight.name}_over_two_to_the_{power}"
    if all(tensor.name != name for tensor in model.graph.initializer):
        values = numpy_helper.to_array(weight) * np.float32(2.0**-power)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return name


def _constant(model: onnx.ModelProto, power: int) -> str:
    """Return the name of a stored power of two, made when it is first asked for."""
    import numpy as np
    from onnx import numpy_helper

    name = f"two_to_the_{power}".replace("-", "minus_")
    if all(tensor.name != name for tensor in model.graph.initializer):
        value: np.ndarray = np.array(2.0**power, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return name
