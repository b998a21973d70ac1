"""Scaling: a MatMul that would overflow in fp16 gets smaller factors, and a Mul scales its product back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.quantization.half import half_choice
from engine.kit.quantization.half.ranges import Ranges
from engine.kit.quantization.half.signatures import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import onnx_ir as ir

_SMALL = 1.0
"""Lower limit of the largest absolute value in a MatMul's input after the input was divided for fp16.

If the largest number of a divided input were smaller, the small numbers of the input would lose bits in fp16.
"""
_SMALL_WEIGHT = 0.125
"""Lower limit of the largest absolute value in a MatMul's weight after the weight was divided for fp16.

The limit for weights is lower than the limit for inputs, because the absolute values in a weight span a narrower range.
"""


def scale_products(model: ir.Model, measured: Ranges, kind: Kind) -> list[str]:
    """Divide the factors of each MatMul that overflows, and multiply its product in return; return the MatMuls' names.

    The divisors are powers of two, which are exact, so the float32 model computes the same numbers. The values of a
    trained T5 model overflow in fp16 without scaling, and TensorRT-RTX has no float32 matrix products for SM75. Every
    node of the graph must have a name; `model` is changed. A MatMul is not scaled where its factors would become too
    small, or are not finite.
    """
    limit = half_choice.largest_limit(kind)
    scaled: list[str] = []
    for node in list(model.graph):
        weight = node.inputs[1] if node.op_type == "MatMul" else None
        if weight is None or not weight.is_initializer():
            continue
        powers = _powers(node, measured, limit)
        if any(powers):
            _scale(model.graph, node, weight, powers)
            scaled.append(node.name or "")
    return scaled


def _scale(graph: ir.Graph, node: ir.Node, weight: ir.Value, powers: tuple[int, int]) -> None:
    """Divide the input and the weight of a MatMul by powers of two, and multiply its product by both powers."""
    product = node.outputs[0]
    small, large = _constant(graph, -powers[0]), _constant(graph, sum(powers))
    if powers[1]:
        node.replace_input_with(1, _smaller(graph, weight, powers[1]))
    down = surgery.node("Mul", [node.inputs[0], small], f"{node.name}_scaled", f"{node.name}_down")
    graph.insert_before(node, down)
    node.replace_input_with(0, down.outputs[0])
    surgery.follow(product, f"{node.name}_product", surgery.node("Mul", [product, large], "", f"{node.name}_up"))


def _powers(node: ir.Node, measured: Ranges, limit: float) -> tuple[int, int]:
    """Return the exponents of the powers of two by which the input and the weight of a MatMul are divided.

    Both exponents are 0 where scaling is not needed or cannot help.

    The MatMul's input is divided in preference to its weight, because samples show the input's size, and because an
    input beyond the limit of the half precision must be divided in any case. The weight is divided where dividing the
    input is not enough.
    """
    names = (*surgery.input_names(node)[:2], *surgery.output_names(node))
    source, weight, product = (measured.largest.get(name, 0.0) for name in names)
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


def _smaller(graph: ir.Graph, weight: ir.Value, power: int) -> ir.Value:
    """Store a copy of a weight, divided by a power of two, and return it; other nodes may read the weight."""
    import numpy as np

    name = f"{weight.name}_over_two_to_the_{power}"
    return _stored(graph, name, lambda: surgery.numbers(weight) * np.float32(2.0**-power))


def _constant(graph: ir.Graph, power: int) -> ir.Value:
    """Return a stored power of two; the first call stores the number."""
    import numpy as np

    name = f"two_to_the_{power}".replace("-", "minus_")
    return _stored(graph, name, lambda: np.array(2.0**power, np.float32))


def _stored(graph: ir.Graph, name: str, values: Callable[[], np.ndarray]) -> ir.Value:
    """Return the stored tensor `name`; the first call stores the tensor."""
    return graph.initializers.get(name) or surgery.store(graph, name, values())
