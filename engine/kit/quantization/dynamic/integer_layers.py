"""Integer layers: MatMuls that round each row of their input by itself, so no row depends on what shares its batch."""

# ONNX Runtime's own dynamic quantization gives a whole tensor one scale, from the smallest to the largest value of all
# rows. Its operator MatMulIntegerToFloat takes one scale for its first factor, too, but a scale that is stored ahead of
# time, or the scale 1 where the product of each row is multiplied by the row's own scale afterwards.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import opsets, surgery
from engine.kit.onnx.surgery import TensorNames
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

_STEPS, _MIDDLE = 127, 128
"""The largest distance from the zero point of a symmetric uint8, and this zero point.

Activations are uint8 because the kernels for x86 multiply uint8 by int8; with int8 activations they are slower.
"""
_ALL, _BELOW = 255, 32
"""The largest uint8; and the zero point of values with a bound below 0, such as those of Gelu."""
_LEAST = 1e-30
"""The scale of a row whose values are all 0, because the row cannot be divided by 0."""
_HUGE = 3e38
"""A divisor that makes 0 of every scale, so that only the zero point is left."""
_QUANTIZED = "_quant"
"""What ONNX Runtime's quantizer adds to the name of a node for the node's quantized form."""
_BLOCKS = 23
"""The opset from which QuantizeLinear takes a scale for each block of an axis, here for each row.

ONNX has such blocks since opset 21, but not every ONNX Runtime that reads opset 21 has a kernel for them.
"""
_AXES_AS_INPUT = 18
"""The opset since which ReduceMax takes its axes as an input instead of an attribute."""
_LARGEST, _REDUCED = 127, 63
"""The largest integer of 8 bits, and of 7 bits."""
_CHUNK = 4 << 20
"""The number of elements of a weight that are rounded at once."""


@dataclass(frozen=True)
class Rounding:
    """How an activation is rounded to 8 bits in front of the MatMul and Attention nodes that `nodes` names.

    With `largest`, all inputs share one range, from -`largest` to `largest`, and larger values are clipped. Without it,
    each row gets a scale of its own; `least` is a bound below which no value lies.
    """

    nodes: tuple[str, ...]
    largest: float | None = None
    least: float | None = None


def quantize(model: ir.Model, roundings: Sequence[Rounding], *, reduce_range: bool) -> None:
    """Round activations as stated, and multiply integers; `model` is changed.

    The MatMul nodes have stored weights [input, output] in float32, which get a scale per output channel;
    `reduce_range` limits them to 7 bits. The first input of an Attention node is rounded by the DynamicQuantizeLinear
    in front of its quantized form, which gets the stated range.
    """
    writer = _Writer(model, reduce_range=reduce_range)
    for rounding in roundings:
        names = (each for name in rounding.nodes for each in (name, f"{name}{_QUANTIZED}"))
        nodes = [node for name in names if (node := writer.nodes.get(name)) is not None]
        products = [node for node in nodes if node.op_type == "MatMul"]
        if rounding.largest is not None:
            writer.fix_ranges(nodes, rounding.largest)
        if products and rounding.largest is not None:
            writer.with_range(products, rounding.largest)
        elif products:
            writer.by_row(products, rounding.least)
    surgery.drop_unread(writer.weights)


class _Writer:
    """Writes the nodes of integer layers into a model; what several nodes read is stored once."""

    def __init__(self, model: ir.Model, *, reduce_range: bool) -> None:
        self.graph = model.graph
        self.nodes: Mapping[str, ir.Node] = {node.name: node for node in model.graph if node.name}
        self.opset = opsets.under_both_names(model.opset_imports)[""]
        self.reduce_range = reduce_range
        self.names = TensorNames(model)
        self.weights: dict[ir.Value, tuple[ir.Value, ir.Value]] = {}
        self.constants: dict[str, ir.Value] = {}
        model.opset_imports.setdefault(CONTRIBUTED, 1)

    def fix_ranges(self, nodes: Sequence[ir.Node], largest: float) -> None:
        """Give the input of QAttention nodes a stored scale in place of one that is computed at each run."""
        import numpy as np

        for node in nodes:
            value = _input(node)
            dynamic = value.producer()
            if node.op_type != "QAttention" or dynamic is None or dynamic.op_type != "DynamicQuantizeLinear":
                continue
            source = dynamic.inputs[0]
            scale, zero = self.constant(np.float32(largest / _STEPS)), self.constant(np.uint8(_MIDDLE))
            name = self.names.free(f"{value.name}_fixed")
            rounded = surgery.node("QuantizeLinear", [source, scale, zero], name, f"{name}_Round")
            self.graph.insert_before(dynamic, rounded)
            for old, new in zip(dynamic.outputs, (rounded.outputs[0], scale, zero), strict=True):
                old.replace_all_uses_with(new)
            self.graph.remove(dynamic, safe=True)

    def with_range(self, products: Sequence[ir.Node], largest: float) -> None:
        """Round the input of some MatMuls in one range for all inputs; a bias is added by the product's own kernel."""
        import numpy as np

        value = _input(products[0])
        scale, zero = self.constant(np.float32(largest / _STEPS)), self.constant(np.uint8(_MIDDLE))
        name = self.names.free(f"{value.name}_rounded")
        rounded = surgery.node("QuantizeLinear", [value, scale, zero], name, f"{name}_Round")
        self.graph.insert_before(products[0], rounded)
        for node in products:
            addition = _addition(node)
            bias = None if addition is None else next(each for each in addition.inputs if each is not node.outputs[0])
            self.product(node, rounded.outputs[0], scale, zero, bias=bias, instead_of=addition)

    def by_row(self, products: Sequence[ir.Node], least: float | None) -> None:
        """Round each row of the input of some MatMuls with its own scale, by which the row's products are multiplied.

        The range of a row is symmetric if no bound below the values is known.
        """
        import numpy as np

        value = _input(products[0])
        name = self.names.free(f"{value.name}_rows")
        zero = {None: _MIDDLE, 0.0: 0}.get(least, _BELOW)
        steps = _STEPS if least is None else _ALL - zero
        smallest = -least / zero if least else _LEAST
        sizes = [] if least is not None else [surgery.node("Abs", [value], f"{name}_sizes", f"{name}_Abs")]
        axes, attributes = self.last_axis()
        reach = surgery.node(
            "ReduceMax", [sizes[0].outputs[0] if sizes else value, *axes], f"{name}_reach", f"{name}_ReduceMax",
            keepdims=1, **attributes,
        )  # fmt: skip
        step = self.constant(np.float32(1 / steps))
        exact = surgery.node("Mul", [*reach.outputs, step], f"{name}_exact_scales", f"{name}_Mul")
        scales = surgery.node(
            "Max", [*exact.outputs, self.constant(np.float32(smallest))], f"{name}_scales", f"{name}_Max"
        )
        zero_point, one = self.constant(np.uint8(zero)), self.constant(np.float32(1))
        width = surgery.shape(_input(products[0], 1))[0]
        rounding = self.rounded(name, value, scales.outputs[0], zero_point if zero else None, width)
        self.graph.insert_before(products[0], [*sizes, reach, exact, scales, *rounding])
        for node in products:
            product = self.product(node, rounding[-1].outputs[0], one, zero_point if zero else None)
            scaled = surgery.node("Mul", [product, *scales.outputs], "", f"{product.name}_Mul")
            surgery.follow(product, self.names.free(f"{product.name}_integer"), scaled)

    def rounded(self, name: str, value: ir.Value, scales: ir.Value, zero: ir.Value | None, width: int) -> list[ir.Node]:
        """Return the nodes that round each row of `width` values with its scale in `scales`; the last gives uint8."""
        import numpy as np

        if self.opset < _BLOCKS:
            even = surgery.node("Div", [value, scales], f"{name}_even", f"{name}_Div")
            inputs = [*even.outputs, self.constant(np.float32(1)), zero or self.constant(np.uint8(0))]
            return [even, surgery.node("QuantizeLinear", inputs, f"{name}_rounded", f"{name}_Round")]
        # Blocks need a zero point for each scale. It is the scale, divided by so much that 0 is left, plus the zero
        # point: this is one node instead of a Shape and a ConstantOfShape.
        zeros = []
        if zero is not None:
            inputs = [scales, self.constant(np.float32(_HUGE)), zero]
            zeros = [surgery.node("QuantizeLinear", inputs, f"{name}_zeros", f"{name}_Zeros")]
        inputs = [value, scales, *(node.outputs[0] for node in zeros)]
        blocks = surgery.node("QuantizeLinear", inputs, f"{name}_rounded", f"{name}_Round", axis=-1, block_size=width)
        return [*zeros, blocks]

    def product(
        self,
        node: ir.Node,
        rounded: ir.Value,
        scale: ir.Value,
        zero: ir.Value | None,
        *,
        bias: ir.Value | None = None,
        instead_of: ir.Node | None = None,
    ) -> ir.Value:
        """Turn a MatMul, and the Add `instead_of` of its bias, into a product of integers, and return the floats."""
        weight, scales = self.weight(_input(node, 1))
        inputs = [rounded, weight, scale, scales, zero, None, bias]
        while inputs[-1] is None:  # a node has no empty inputs at its end
            inputs.pop()
        old = instead_of or node
        integer = surgery.contributed("MatMulIntegerToFloat", inputs, old, node.name or "")
        surgery.replace(old, [integer])
        if instead_of is not None:
            self.graph.remove(node, safe=True)
        return integer.outputs[0]

    def weight(self, value: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return the integers and the scales of a weight; the scale of an output channel fits its largest value."""
        if value not in self.weights:
            codes, scales = by_column(surgery.numbers(value), reduce_range=self.reduce_range)
            self.weights[value] = (
                surgery.store(self.graph, self.names.free(f"{value.name}_integers"), codes),
                surgery.store(self.graph, self.names.free(f"{value.name}_scales"), scales),
            )
        return self.weights[value]

    def last_axis(self) -> tuple[list[ir.Value], dict[str, Sequence[int]]]:
        """Return the inputs and the attributes with which ReduceMax takes the last axis, in the model's opset."""
        import numpy as np

        if self.opset < _AXES_AS_INPUT:
            return [], {"axes": [-1]}
        return [self.constant(np.array([-1], np.int64))], {}

    def constant(self, number: np.generic | np.ndarray) -> ir.Value:
        """Return a stored number."""
        import numpy as np

        array = np.asarray(number)
        key = f"rounding_{array.dtype}_{'_'.join(map(str, array.reshape(-1)))}"
        if key not in self.constants:
            self.constants[key] = surgery.store(self.graph, self.names.free(key), array)
        return self.constants[key]


def _input(node: ir.Node, index: int = 0) -> ir.Value:
    """Return a factor of a node: its input, or with 1 its weight [input, output]."""
    value = node.inputs[index]
    if value is None:
        raise ValueError(f"{node.name} lacks its factor {index + 1}")
    return value


def _addition(node: ir.Node) -> ir.Node | None:
    """Return the Add that alone reads a product and adds a stored bias [output] in float32; None without one."""
    product = node.outputs[0]
    uses = list(product.uses())
    if len(uses) != 1 or product.is_graph_output() or uses[0].node.op_type != "Add":
        return None
    addition = uses[0].node
    other = addition.inputs[1 - uses[0].idx]
    weight = node.inputs[1]
    if other is None or weight is None or not other.is_initializer() or addition.graph is not node.graph:
        return None
    stored = surgery.tensor(other)
    fits = surgery.shape(other) == (surgery.shape(weight)[1],)
    return addition if fits and stored.dtype == surgery.tensor(weight).dtype else None


def by_column(weight: np.ndarray, *, reduce_range: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers of a weight [input, output], int8, and the scales of its columns, float32 [output].

    The scale of a column maps the column's largest absolute value to the largest integer, so the zero point is 0.
    """
    import numpy as np

    most = _REDUCED if reduce_range else _LARGEST
    largest = np.zeros(weight.shape[1], np.float32)
    for rows in _chunks(weight):
        largest = np.maximum(largest, np.abs(weight[rows]).max(axis=0, initial=0))
    scales = np.where(largest > 0, largest / np.float32(most), np.float32(1)).astype(np.float32)
    integers = np.empty(weight.shape, np.int8)
    for rows in _chunks(weight):
        integers[rows] = np.clip(np.rint(weight[rows] / scales), -most, most)
    return integers, scales


def _chunks(weight: np.ndarray) -> Iterator[slice]:
    rows = max(1, _CHUNK // max(1, weight.shape[1]))
    return (slice(start, start + rows) for start in range(0, len(weight), rows))
