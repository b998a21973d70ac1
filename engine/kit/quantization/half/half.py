"""Half: chosen nodes of a graph run in fp16 or bf16, all remaining nodes in float32, with casts in between."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files, opsets, surgery
from engine.kit.onnx.surgery import TensorNames
from engine.kit.quantization.half import signatures
from engine.kit.quantization.half.ranges import FLOAT
from engine.kit.quantization.half.signatures import Kind, Slots

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

_SCALES = {"QuantizeLinear": 1, "DequantizeLinear": 1}
"""For each operator of a Q/DQ pair, the index of the input that holds the scale."""


def convert(model: ir.Model, low: AbstractSet[str], types: Mapping[str, str], kind: Kind) -> int:
    """Let the nodes named in `low` compute in half precision, and return the number of inserted casts.

    A float32 tensor keeps its name; the half-precision copy of a tensor gets a new name. Inputs and outputs of the
    model stay float32, and so do tensors that a body of If or Loop reads. Weights are stored in half precision, so no
    cast of a weight runs at inference. `types` are the types of all tensors of the main graph (`ranges.tensor_types`).
    `model` is changed.
    """
    _free_weights(model)
    conversion = _Conversion(model, types, kind)
    for node in list(model.graph):
        slots = signatures.of(node, conversion.opsets, kind) if node.name in low else signatures.NONE
        conversion.convert(node, slots)
    return conversion.finish()


class _Conversion:
    """The graph during its conversion to half precision: the half-precision form and the float32 form of values.

    A node that gives half precision computes its own output under a new name. A cast then gives the float32 form, under
    the old name, if anything reads that form.
    """

    def __init__(self, model: ir.Model, types: Mapping[str, str], kind: Kind) -> None:
        self.graph, self.kind = model.graph, kind
        self.opsets = opsets.under_both_names(model.opset_imports)
        self.names = TensorNames(model)
        self.floats = {value for name, value in surgery.values(model.graph).items() if types.get(name) == FLOAT}
        self.halves: dict[ir.Value, ir.Value] = {}
        self.singles: dict[ir.Value, ir.Value] = {}
        self.old_names: dict[ir.Value, str] = {}
        self.casts = 0

    def convert(self, node: ir.Node, slots: Slots) -> None:
        """Let the inputs and outputs of a node that `slots` allows be in half precision."""
        self._keep_bodies(node)
        for index, value in enumerate(node.inputs):
            if value is None or value not in self.floats:
                continue
            if slots.takes(index):
                node.replace_input_with(index, self._half(value, node, scale=_SCALES.get(node.op_type) == index))
            else:
                node.replace_input_with(index, self._single(value, node))
        lowered = [value for index, value in enumerate(node.outputs) if value in self.floats and slots.gives(index)]
        for value in lowered:
            self.old_names[value] = value.name or ""
            value.name = self.names.free(f"{value.name}_{self.kind}")
            value.type = _type(self.kind)
            self.halves[value] = value
        if lowered:
            _retype(node, self.kind)

    def finish(self) -> int:
        """Give the outputs of the model in float32, remove unread weights, and return the number of casts."""
        for index, value in enumerate(self.graph.outputs):
            if value in self.old_names:
                self.graph.outputs[index] = self._single(value, None)
        surgery.drop_unread(self.graph.initializers.values())
        return self.casts

    def _keep_bodies(self, node: ir.Node) -> None:
        """Let the bodies of a node read values of the main graph in float32."""
        inner = [each for body in surgery.bodies(node) for each in body.all_nodes()]
        reads = [(each, index, value) for each in inner for index, value in enumerate(each.inputs) if value is not None]
        lowered = [read for read in reads if read[2] in self.old_names]
        for each, index, value in sorted(lowered, key=lambda read: self.old_names[read[2]]):
            each.replace_input_with(index, self._single(value, node))

    def _half(self, value: ir.Value, reader: ir.Node, *, scale: bool = False) -> ir.Value:
        """Return the half-precision form of a value; the first call stores it, or adds a cast in front of a reader."""
        if value not in self.halves:
            name = self.names.free(f"{value.name}_{self.kind}")
            if value.is_initializer():
                values = _lowered(surgery.numbers(value), self.kind, scale=scale)
                self.halves[value] = surgery.store(self.graph, name, values)
            else:
                self.halves[value] = self._cast(value, name, reader, _type(self.kind))
        return self.halves[value]

    def _single(self, value: ir.Value, reader: ir.Node | None) -> ir.Value:
        """Return the float32 form of a value; the first call for a lowered value adds a cast in front of a reader."""
        import onnx_ir as ir

        if value not in self.old_names:
            return value
        if value not in self.singles:
            self.singles[value] = self._cast(value, self.old_names[value], reader, ir.TensorType(ir.DataType.FLOAT))
        return self.singles[value]

    def _cast(self, value: ir.Value, name: str, reader: ir.Node | None, dtype: ir.TensorType) -> ir.Value:
        node = surgery.node("Cast", [value], name, f"{name}_cast", to=int(dtype.dtype))
        node.outputs[0].type, node.outputs[0].shape = dtype, value.shape
        if reader is None:
            self.graph.append(node)
        else:
            self.graph.insert_before(reader, node)
        self.casts += 1
        return node.outputs[0]


def rounded(values: np.ndarray, kind: Kind) -> np.ndarray:
    """Return float32 numbers in half precision; numbers beyond the range of the half precision become infinite."""
    import numpy as np

    with np.errstate(over="ignore"):
        return values.astype(_type(kind).dtype.numpy())


def _type(kind: Kind) -> ir.TensorType:
    import onnx_ir as ir

    return ir.TensorType(ir.DataType.FLOAT16 if kind == "fp16" else ir.DataType.BFLOAT16)


def _lowered(values: np.ndarray, kind: Kind, *, scale: bool) -> np.ndarray:
    """Return the numbers of a weight in half precision.

    A quantization scale that would be rounded to 0 becomes the smallest number above 0.
    """
    import numpy as np

    return rounded(np.maximum(values, np.float32(signatures.SMALLEST[kind])) if scale else values, kind)


def _retype(node: ir.Node, kind: Kind) -> None:
    import numpy as np
    import onnx_ir as ir

    if node.op_type == "Cast":
        node.attributes.add(ir.AttrInt64("to", int(_type(kind).dtype)))
    elif node.op_type in {"Constant", "ConstantOfShape"}:
        number = next((attribute for name, attribute in node.attributes.items() if name.startswith("value")), None)
        values = (
            np.zeros(1) if number is None else number.value
        )  # ConstantOfShape gives zeros in float32 without a value
        surgery.constant(node, rounded(np.asarray(values, np.float32), kind))


def _free_weights(model: ir.Model) -> None:
    """Remove weights from the inputs of the graph; before IR version 4 each weight had to be an input."""
    from onnx_ir.passes.common import RemoveInitializersFromInputsPass

    RemoveInitializersFromInputsPass()(model)
    model.ir_version = max(model.ir_version, onnx_files.WEIGHTS_NEED_NO_INPUT)
