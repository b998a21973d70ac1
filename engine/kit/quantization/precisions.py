"""Precisions: which models are in a lower precision already and stay unchanged, and what a quantization has left."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files, opsets, widening
from engine.kit.onnx.opsets import OpsetError
from engine.kit.quantization.report import Sizes
from engine.runtimes.onnxruntime import session as ort
from engine.text import lists

if TYPE_CHECKING:
    import onnx

_MARKS = ("QLinear", "DynamicQuantize", "QuantizeLinear", "DequantizeLinear", "QAttention", "QGemm", "QEmbed")
_ENDS = ("Integer", "IntegerToFloat", "NBits", "Bnb4", "Fp4")
_FEW_BITS = ("INT8", "UINT8", "INT4", "UINT4", "INT2", "UINT2", "FLOAT8", "FLOAT4")
_CARRIERS = frozenset({
    "Attention", "Conv", "ConvTranspose", "Einsum", "EmbedLayerNormalization", "GRU", "Gather", "Gemm", "LSTM",
    "MatMul", "RNN",
})  # fmt: skip
"""The operators that are reported where their weights stay in floating point.

Convolutions keep floating-point weights, because dynamic quantization makes convolutions slower and less exact.
"""


class LeftAloneError(Exception):
    """The error that says why quantization leaves a model unchanged."""


def refuse_quantized(model: onnx.ModelProto) -> None:
    """Raise LeftAloneError for a model that is already quantized."""
    if operators := signs(model):
        raise LeftAloneError(f"it is quantized already ({', '.join(operators)})")


def refuse_half(model: onnx.ModelProto, lower: str) -> None:
    """Raise LeftAloneError for a model that is to be in a half precision, and whose weights are in it already."""
    names = {"fp16": "FLOAT16", "bf16": "BFLOAT16"}
    if lower in names and widening.has_half(model, names[lower]):
        raise LeftAloneError("its weights are in this half precision already")


def raised(directory: Path, oldest: int) -> onnx.ModelProto:
    """Return the model in a folder in opset `oldest` or a newer one. Raises LeftAloneError where it has none."""
    try:
        return opsets.raised(onnx_files.load_mapped(directory), oldest)
    except OpsetError as error:
        raise LeftAloneError(str(error)) from error


@contextlib.contextmanager
def in_float32(directory: Path, scratch: Path) -> Iterator[Path]:
    """Yield the folder of a model in float32: `directory`, or for half precision a folder that lasts for the block."""
    if not widening.has_half(onnx_files.load_graph(directory)):
        yield directory
        return
    print("half precision becomes float32")
    with TemporaryDirectory(dir=scratch) as folder:
        with mapped_weights.spilling(Path(folder)):
            onnx_files.save(widening.widened(onnx_files.load_mapped(directory)), Path(folder) / "wide")
        yield Path(folder) / "wide"


def size(directory: Path) -> int:
    """Return the size of a model and of its external data in bytes."""
    return onnx_files.size(directory, onnx_files.load_graph(directory))


def finished(fused: Path, out: Path, quantized: Mapping[str, int], left: Sequence[str] = ()) -> Sizes:
    """Print how many operators were quantized, and which were left; return the sizes of the model before and after.

    Raises StepError where ONNX Runtime cannot open the model in `out`: such a model must not leave the step.
    """
    sizes = (size(fused), size(out))
    print(f"quantized {lists.counts(quantized)}: {sizes[0]} -> {sizes[1]} bytes")
    if left:
        print(f"left as they are: {', '.join(left)}")
    ort.session(out, threads=1, prepack=False)
    return sizes


def signs(model: onnx.ModelProto) -> list[str]:
    """Return the signs that a model is already quantized: quantizing operators and types of low-bit weights."""
    from onnx import TensorProto

    operators = {node.op_type for node in onnx_files.nodes(model)}
    quantizing = {name for name in operators if name.startswith(_MARKS) or name.endswith(_ENDS)}
    types = {tensor.data_type for tensor in onnx_files.tensors(model) if len(tensor.dims) > 1}
    names = {TensorProto.DataType.Name(number) for number in types}
    return sorted(quantizing | {f"{name} weights" for name in names if name.startswith(_FEW_BITS)})


def left(model: onnx.ModelProto) -> list[str]:
    """Return the number and name of the operators that still have floating-point weights, for example "2 Conv"."""
    import onnx

    floats = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    counts: Counter[str] = Counter()
    weights: set[str] = set()  # bodies of If and Loop see the weights of the graphs around them
    for graph in onnx_files.graphs(model.graph):
        weights |= {t.name for t in graph.initializer if t.data_type in floats and sum(size > 1 for size in t.dims) > 1}
        counts.update(n.op_type for n in graph.node if n.op_type in _CARRIERS and not weights.isdisjoint(n.input))
    return [f"{count} {name}" for name, count in sorted(counts.items())]
