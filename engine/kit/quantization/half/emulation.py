"""Emulation of a GPU's fp16, bf16 and TF32 on a CPU: tensors are rounded, and overflow where the GPU's would."""

# Source: NVIDIA, "NVIDIA A100 Tensor Core GPU Architecture": TF32 has the 8 bits of fp32's exponent and 10 bits of
# mantissa; products are added up in fp32.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, onnx_files, shapes, surgery

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnx_ir as ir

_CONSTANTS = frozenset({"Constant", "ConstantOfShape"})
_PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose", "FusedMatMul", "Attention"})
"""Operators whose first two inputs a GPU multiplies. A third input, the bias, is added in fp32.

Of an Attention of ONNX Runtime, that is the product with the weights alone: the products inside stay in fp32.
"""
_DROPPED = 13
"""The bits of fp32's mantissa that TF32 drops: 23 - 10."""
_LARGEST = 2.0**100
"""Larger numbers are not rounded, because the product with `2**13 + 1` would be infinite."""


def kinds(model: onnx.ModelProto) -> list[str]:
    """Return the half precisions that a model computes in: "fp16", "bf16"."""
    from onnx import TensorProto

    names = {TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16"}
    codes = {tensor.data_type for tensor in onnx_files.tensors(model)}
    codes |= {a.i for node in onnx_files.nodes(model) if node.op_type == "Cast" for a in node.attribute}
    codes |= {value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.value_info)}
    return [name for code, name in names.items() if code in codes]


def emulate(model: ir.Model) -> None:
    """Let half-precision nodes compute in float32 on numbers rounded to half precision; `model` is changed.

    ONNX Runtime has few half-precision kernels for CPUs. ONNX Runtime inserts casts to float32, and removes casts that
    it considers redundant, so a number above 65504 stays finite where a GPU gives infinity. In the emulation, the
    inputs and outputs of each node are rounded to half precision, as by GPU kernels that sum in float32. GPU kernels
    with half-precision sums are less exact than the emulation. A model that was changed for the emulation must run with
    ONNX Runtime's optimizations disabled. The graphs inside If and Loop nodes are not changed.
    """
    infer_types(model)
    emulation = _Emulation(model.graph)
    for node in list(model.graph):
        emulation.emulate(node)
    surgery.drop_unread(model.graph.initializers.values())


@dataclass
class _Emulation:
    """The changed graph. A half-precision tensor `h` keeps its name, and `h_wide` holds the same numbers in float32."""

    graph: ir.Graph
    wide: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def emulate(self, node: ir.Node) -> None:
        """Let a node read numbers of half precision in float32, and round its outputs."""
        halves = [value for value in node.outputs if _is_half(value)]
        for index, value in enumerate(node.inputs):
            if value is not None and _is_half(value):
                node.replace_input_with(index, self._widened(value, node))
        if node.op_type == "Cast" and halves:
            return  # a Cast rounds by itself
        if node.op_type in _CONSTANTS and halves:
            tensor = node.attributes.get_tensor("value", None)
            if tensor is not None:
                surgery.constant(node, tensor.numpy().astype("float32"))
        for value in halves:
            self._round(value)

    def _widened(self, value: ir.Value, reader: ir.Node) -> ir.Value:
        """Return a half-precision value in float32; the first call stores it, or adds a cast in front of a reader."""
        import onnx_ir as ir

        if value not in self.wide:
            name = f"{value.name}_wide"
            if value.is_initializer():
                self.wide[value] = surgery.store(self.graph, name, surgery.numbers(value).astype("float32"))
            else:
                cast = surgery.node("Cast", [value], name, f"{name}_emulated", to=int(ir.DataType.FLOAT))
                self.graph.insert_before(reader, cast)
                self.wide[value] = cast.outputs[0]
        return self.wide[value]

    def _round(self, value: ir.Value) -> None:
        """Add a cast behind the node that computes a half-precision value, which now computes it in float32."""
        import onnx_ir as ir

        cast = surgery.node("Cast", [value], "", f"{value.name}_emulated", to=int(_dtype(value)))
        surgery.follow(value, f"{value.name}_raw", cast)
        value.type = ir.TensorType(ir.DataType.FLOAT)


def _is_half(value: ir.Value) -> bool:
    import onnx_ir as ir

    return value.dtype in {ir.DataType.FLOAT16, ir.DataType.BFLOAT16}


def _dtype(value: ir.Value) -> ir.DataType:
    """Return the type of a value's numbers. Raises ValueError where it is unknown."""
    if value.dtype is None:
        raise ValueError(f"the type of {value.name} is unknown")
    return value.dtype


def infer_types(model: ir.Model) -> None:
    """Give the values of the main graph their types, inferred where the model states none; `model` is changed."""
    import onnx
    import onnx_ir as ir

    unknown = {name: value for name, value in surgery.values(model.graph).items() if value.dtype is None}
    if not unknown:
        return
    message = shapes.skeleton(ir_models.proto(model))
    for stated in onnx.shape_inference.infer_shapes(message).graph.value_info:
        if stated.name in unknown and stated.type.tensor_type.elem_type:
            unknown[stated.name].type = ir.TensorType(ir.DataType(stated.type.tensor_type.elem_type))


def emulate_tf32(model: ir.Model) -> None:
    """Round what the products of the main graph read to TF32; `model` is changed.

    The numbers are rounded to the nearest. A GPU's library may cut the bits off instead, with at most twice the error.
    A changed model must run with ONNX Runtime's optimizations disabled.
    """
    import onnx_ir as ir

    infer_types(model)
    rounded: dict[ir.Value, ir.Value] = {}
    for node in list(model.graph):
        if node.op_type not in _PRODUCTS:
            continue
        for index, value in enumerate(node.inputs[:2]):
            if value is not None and value.dtype == ir.DataType.FLOAT:
                if value not in rounded:
                    rounded[value] = _rounded(model.graph, value, node)
                node.replace_input_with(index, rounded[value])
    surgery.drop_unread(model.graph.initializers.values())


def nearest_tf32(numbers: np.ndarray) -> np.ndarray:
    """Return float32 numbers rounded to the nearest of TF32; of two equally near, the one whose last bit is 0."""
    import numpy as np

    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    even = (bits >> np.uint32(_DROPPED)) & np.uint32(1)
    up = bits + np.uint32((1 << (_DROPPED - 1)) - 1) + even
    cut = (up & np.uint32(0xFFFFFFFF << _DROPPED & 0xFFFFFFFF)).view(np.float32)
    return np.where(np.isfinite(numbers), cut, numbers).astype(np.float32)


def _rounded(graph: ir.Graph, value: ir.Value, reader: ir.Node) -> ir.Value:
    """Return a value in TF32: a stored one rounded now, another one rounded by nodes in front of its first reader.

    The nodes compute `c - (c - x)` with `c = x * (2**13 + 1)` (Veltkamp's splitting). Source: T. J. Dekker, "A
    floating-point technique for extending the available precision", 1971.
    """
    import numpy as np

    name = f"{value.name}_tf32"
    if value.is_initializer() and not value.is_graph_input():
        return surgery.store(graph, name, nearest_tf32(surgery.numbers(value)))
    factor = surgery.store(graph, f"{name}_factor", np.array(2**_DROPPED + 1, np.float32))
    limit = surgery.store(graph, f"{name}_limit", np.array(_LARGEST, np.float32))
    scaled = surgery.node("Mul", [value, factor], f"{name}_scaled", f"{name}_scale")
    rest = surgery.node("Sub", [scaled.outputs[0], value], f"{name}_rest", f"{name}_subtract")
    split = surgery.node("Sub", [scaled.outputs[0], rest.outputs[0]], f"{name}_split", f"{name}_split")
    size = surgery.node("Abs", [value], f"{name}_size", f"{name}_abs")
    small = surgery.node("Less", [size.outputs[0], limit], f"{name}_small", f"{name}_less")
    chosen = surgery.node("Where", [small.outputs[0], split.outputs[0], value], name, f"{name}_choose")
    for node in (scaled, rest, split, size, small, chosen):
        graph.insert_before(reader, node)
    return chosen.outputs[0]
