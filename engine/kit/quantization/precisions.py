"""Precisions: models that are already in a lower precision, and the error for models that stay unchanged."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files, wide
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


def refuse_half(model: onnx.ModelProto, lower: str) -> None:
    """Raise LeftAloneError for a model that is to be in a half precision, and whose weights are in it already."""
    names = {"fp16": "FLOAT16", "bf16": "BFLOAT16"}
    if lower in names and wide.has_half(model, names[lower]):
        raise LeftAloneError("its weights are in this half precision already")


@contextlib.contextmanager
def in_float32(directory: Path, scratch: Path) -> Iterator[Path]:
    """Yield the folder of a model in float32: `directory`, or for half precision a folder that lasts for the block."""
    if not wide.has_half(onnx_files.load_graph(directory)):
        yield directory
        return
    print("half precision becomes float32")
    with TemporaryDirectory(dir=scratch) as folder:
        with mapped_weights.spilling(Path(folder)):
            onnx_files.save(wide.widened(onnx_files.load_mapped(directory)), Path(folder) / "wide")
        yield Path(folder) / "wide"


def size(directory: Path) -> int:
    """Return the size of a model and of its external data in bytes."""
    return onnx_files.size(directory, onnx_files.load_graph(directory))
