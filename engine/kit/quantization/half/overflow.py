"""Overflow: constants for infinity, and MatMuls whose products are beyond fp16, get smaller numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.quantization.half import half_choice
from engine.kit.quantization.half.ranges import Ranges
from engine.kit.quantization.half.signatures import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import onnx_ir as ir

BEYOND = 1e30
"""A constant above the magnitude 1e30 stands for infinity, because no weight is so large."""
STAND_IN = 3e4
"""The absolute value of the number that replaces a constant for infinity.

The sum of two scores of -3e4 is within the range of fp16, and softmax turns a score of -3e4 into 0.
"""

_ADDED = frozenset({"Add", "ConstantOfShape", "Expand", "Mul", "Sub", "Where"})
"""Operators through which a constant reaches attention scores. In Clip, Max and Min a huge constant means no limit."""
_PASS_ON = frozenset({"Cast", "Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
_SMALL = 1.0
"""Lower limit of the largest absolute value in a MatMul's input after the input was divided for fp16.

If the largest number of a divided input were smaller, the small numbers of the input would lose bits in fp16.
"""
_SMALL_WEIGHT = 0.125
"""Lower limit of the largest absolute value in a MatMul's weight after the weight was divided for fp16.

The limit for weights is lower than the limit for inputs, because the absolute values in a weight span a narrower range.
"""


def saturate(model: ir.Model) -> list[str]:
    """Replace constants beyond 1e30 by 3e4 with the same sign, and return their names; `model` is changed.

    A constant is replaced only where all nodes that read the constant lead to attention scores.
    """
    import onnx_ir as ir

    saturated = []
    for value, node in _constants(model):
        tensor = surgery.tensor(value) if node is None else _tensor(node)
        if tensor is None or tensor.dtype != ir.DataType.FLOAT:
            continue
        numbers = tensor.numpy()
        if not (abs(numbers) > BEYOND).any() or not _reaches_scores(value):
            continue
        if node is None:
            surgery.restore(value, _finite(numbers))
        else:
            surgery.constant(node, _finite(numbers))
        saturated.append(value.name or "")
    return saturated


def _constants(model: ir.Model) -> Iterator[tuple[ir.Value, ir.Node | None]]:
    """Yield the stored tensors, and the outputs of Constant and ConstantOfShape with their nodes."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            yield value, None
        for node in graph:
            if node.op_type in {"Constant", "ConstantOfShape"}:
                yield node.outputs[0], node


def _tensor(node: ir.Node) -> ir.TensorProtocol | None:
    """Return the tensor or the single number that a constant node holds; None for another kind of constant."""
    import onnx_ir as ir

    number = node.attributes.get_float("value_float", None)
    return node.attributes.get_tensor("value", None) if number is None else ir.tensor(number, dtype=ir.DataType.FLOAT)


def _finite(values: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.where(abs(values) > BEYOND, np.copysign(np.float32(STAND_IN), values), values).astype(np.float32)


def _reaches_scores(value: ir.Value) -> bool:
    """Whether all readers of a value add, multiply or select its numbers, directly or after a reshape or a cast."""
    nodes = [use.node for use in value.uses()]
    return bool(nodes) and all(
        node.op_type in _ADDED or (node.op_type in _PASS_ON and _reaches_scores(node.outputs[0])) for node in nodes
    )


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
    import numpy as np

    name = f"two_to_the_{power}".replace("-", "minus_")
    return _stored(graph, name, lambda: np.array(2.0**power, np.float32))


def _stored(graph: ir.Graph, name: str, values: Callable[[], np.ndarray]) -> ir.Value:
    return graph.initializers.get(name) or surgery.store(graph, name, values())
