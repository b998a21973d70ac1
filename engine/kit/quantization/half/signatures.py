"""Signatures: which inputs and outputs of an operator may be in half precision, by the operator's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engine.kit.onnx import ir_models, onnx_files, opsets, surgery
from engine.kit.onnx.opsets import STANDARD, OpsetError
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import onnx_ir as ir

Kind = Literal["fp16", "bf16"]
SMALLEST: Mapping[Kind, float] = {"fp16": 2.0**-24, "bf16": 2.0**-133}
"""The smallest number above 0 of each type."""

_NAMES: Mapping[Kind, str] = {"fp16": "tensor(float16)", "bf16": "tensor(bfloat16)"}
_TYPED_BY = frozenset({"dtype", "output_dtype"})
"""Attributes that set the type of an output, whatever the types of the inputs are."""
_FREE = frozenset({"Cast", "Constant", "ConstantOfShape"})
"""Operators with an attribute for the type of their output.

The conversion to half precision changes the attribute that sets the type of the output.
"""
_NOT_IN_BF16 = frozenset({
    *("ConvTranspose", "GlobalLpPool", "HardSwish", "LpNormalization", "LpPool", "Mish"),
    *("DeformConv", "Det", "EyeLike", "GRU", "LSTM", "MaxRoiPool", "MaxUnpool", "NegativeLogLikelihoodLoss", "RNN"),
    *("RoiAlign", "TopK"),
})  # fmt: skip
"""Operators that ONNX allows in bf16 since opset 22 or 24, and that stay in float32.

TensorRT-RTX 1.7.1 refuses those of the first row: its parser accepts float and half alone, or the build fails
(tests/kit/quantization/half/test_signatures.py builds HardSwish and Mish). Those of the other rows were not tried.
"""
_RANDOM = ("Random", "Multinomial", "Bernoulli")
BF16_OPSET = 22
"""The opset that gave bf16 to Conv, ConvTranspose, poolings and some activations. Source: ONNX's changelog."""


@dataclass(frozen=True)
class Slots:
    """Whether each input and output of a node may be in half precision.

    The last entry of `inputs` and of `outputs` also holds for all further inputs and outputs of the node.
    """

    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]

    def takes(self, index: int) -> bool:
        """Whether the node's input at `index` may be in half precision."""
        return bool(self.inputs) and self.inputs[min(index, len(self.inputs) - 1)]

    def gives(self, index: int) -> bool:
        """Whether the node's output at `index` may be in half precision."""
        return bool(self.outputs) and self.outputs[min(index, len(self.outputs) - 1)]


NONE = Slots((), ())


def of(node: ir.Node, opsets: Mapping[str, int], kind: Kind) -> Slots:
    """Return which inputs and outputs of a node may be in half precision, by the schema of the node's operator.

    No input or output may be in half precision if the operator is unknown, if it draws random numbers, if the node has
    bodies, or if an attribute such as `dtype` sets the type of an output.
    """
    if node.op_type.startswith(_RANDOM) or not _TYPED_BY.isdisjoint(node.attributes) or [*surgery.bodies(node)]:
        return NONE
    if kind == "bf16" and node.op_type in _NOT_IN_BF16 and node.domain in STANDARD:
        return NONE
    if node.op_type in _FREE and node.domain in STANDARD:
        return Slots((node.op_type == "Cast",), (True,))
    schema = _schema(node.op_type, node.domain, opsets.get(node.domain, opsets.get("", 0)))
    if schema is None:
        return NONE
    inputs, outputs, allowed = schema
    low = {name for name in (*inputs, *outputs) if _NAMES[kind] in allowed.get(name, {name})}
    return Slots(tuple(name in low for name in inputs), tuple(name in low for name in outputs))


_Schema = tuple[tuple[str, ...], tuple[str, ...], Mapping[str, frozenset[str]]]
"""The type name of each input and output of an operator, and the types that each type name allows."""


@cache
def _schema(operator: str, domain: str, version: int) -> _Schema | None:
    import onnx

    if domain in STANDARD:
        try:
            schema = onnx.defs.get_schema(operator, version, "")
        except onnx.defs.SchemaError:
            return None
        return _read(schema.inputs, schema.outputs, schema.type_constraints, "type_str")
    return _contributed().get(operator) if domain == CONTRIBUTED else None


@cache
def _contributed() -> Mapping[str, _Schema]:
    """Return the schemas of the operators that ONNX Runtime adds, which the package onnx does not have."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return {
        schema.name: _read(schema.inputs, schema.outputs, schema.type_constraints, "typeStr")
        for schema in state.get_all_operator_schema()
        if schema.domain == CONTRIBUTED
    }


def _read(inputs: Sequence[Any], outputs: Sequence[Any], constraints: Sequence[Any], field: str) -> _Schema:
    allowed = {entry.type_param_str: frozenset(entry.allowed_type_strs) for entry in constraints}
    type_names = [tuple(getattr(part, field) for part in parts) for parts in (inputs, outputs)]
    return type_names[0], type_names[1], allowed


def load_for_bf16(directory: Path, newest: int) -> ir.Model:
    """Return the model in `directory`, in opset 22 where this gives operators of the model a form in bf16.

    `newest` is the newest opset that the runtime reads. The model keeps its opset where the runtime reads no opset 22,
    or where the model cannot be converted; these operators then stay in float32.
    """
    model = ir_models.load(directory)
    if newest < BF16_OPSET or not _gains(model):
        return model
    if opsets.under_both_names(opsets.relabeled(model, BF16_OPSET).opset_imports)[""] >= BF16_OPSET:
        return model
    try:
        return ir_models.of(opsets.raised(onnx_files.load_mapped(directory), BF16_OPSET))
    except OpsetError as error:
        print(f"convolutions have no bf16 in this model: {error}")
        return model


def _gains(model: ir.Model) -> bool:
    """Whether an operator of the main graph has a form in bf16 in opset 22 and none in the model's opset."""
    imported = opsets.under_both_names(model.opset_imports)
    newer = {**imported, **dict.fromkeys(opsets.STANDARD, BF16_OPSET)}
    return imported[""] < BF16_OPSET and any(
        of(node, imported, "bf16") != of(node, newer, "bf16") for node in model.graph
    )
