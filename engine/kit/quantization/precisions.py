"""Precisions: checks for models that are already in a lower precision, and the error for models that stay unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files
from engine.kit.quantization import int8

if TYPE_CHECKING:
    import onnx


class LeftAloneError(Exception):
    """The error that says why quantization leaves a model unchanged."""


def refuse_quantized(model: onnx.ModelProto) -> None:
    """Raise LeftAloneError for a model that is already quantized."""
    signs = int8.signs(model)
    if signs:
        raise LeftAloneError(f"it is quantized already ({', '.join(signs)})")


def refuse_half(model: onnx.ModelProto) -> None:
    """Raise LeftAloneError for a model whose weights are in half precision."""
    if has_half_weights(model):
        raise LeftAloneError("its weights are in half precision, and only single precision can be quantized")


def has_half_weights(model: onnx.ModelProto) -> bool:
    """Whether any stored tensor of a model is in half precision."""
    import onnx

    halves = {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    return any(tensor.data_type in halves for tensor in onnx_files.tensors(model))


def size(directory: Path) -> int:
    """Return the size of a model and of its external data in bytes."""
    return onnx_files.size(directory, onnx_files.load_graph(directory))
