"""The opset of a graph in bf16: convolutions and poolings have a form in bf16 only since opset 22."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, onnx_files, opsets
from engine.kit.onnx.opsets import OpsetError
from engine.kit.quantization.half import signatures

if TYPE_CHECKING:
    import onnx_ir as ir

OPSET = 22
"""The opset that gave bf16 to Conv, ConvTranspose, poolings and some activations. Source: ONNX's changelog."""


def load(directory: Path, newest: int) -> ir.Model:
    """Return the model in `directory`, in opset 22 where this gives operators of the model a form in bf16.

    `newest` is the newest opset that the runtime reads. The model keeps its opset where the runtime reads no opset 22,
    or where the model cannot be converted; these operators then stay in float32.
    """
    model = ir_models.load(directory)
    if newest < OPSET or not _gains(model):
        return model
    if _opset(opsets.relabeled(model, OPSET)) >= OPSET:
        return model
    try:
        return ir_models.of(opsets.raised(onnx_files.load_mapped(directory), OPSET))
    except OpsetError as error:
        print(f"convolutions have no bf16 in this model: {error}")
        return model


def _opset(model: ir.Model) -> int:
    return opsets.under_both_names(model.opset_imports)[""]


def _gains(model: ir.Model) -> bool:
    """Whether an operator of the main graph has a form in bf16 in opset 22 and none in the model's opset."""
    imported = opsets.under_both_names(model.opset_imports)
    newer = {**imported, **dict.fromkeys(opsets.STANDARD, OPSET)}
    return imported[""] < OPSET and any(
        signatures.of(node, imported, "bf16") != signatures.of(node, newer, "bf16") for node in model.graph
    )
