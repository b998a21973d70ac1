"""Emulation of a GPU's half precision on a CPU: each tensor is rounded, and overflows where the GPU's would."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, onnx_files, shapes, surgery

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

_CONSTANTS = frozenset({"Constant", "ConstantOfShape"})


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
            _make_single(node)
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


def _make_single(node: ir.Node) -> None:
    """Turn a constant in half precision into float32; its numbers stay the same."""
    tensor = node.attributes.get_tensor("value", None)
    if tensor is not None:
        surgery.constant(node, tensor.numpy().astype("float32"))
