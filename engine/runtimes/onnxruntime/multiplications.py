"""The multiplications of a model in each precision, counted from the kernels that ONNX Runtime's profiler reports."""

# ONNX Runtime fuses operators and chooses kernels when it opens a model, so that the graph alone does not tell what
# multiplies. The profile of a run names each kernel with the types and the shapes of its inputs and outputs.

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from engine.runtimes.onnxruntime import matmul_nbits
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime.providers import SessionProvider
from engine.runtimes.runner import Tally

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

_PRODUCTS = (
    "DynamicQuantizeMatMul", "FusedGemm", "FusedMatMul", "FusedMatMulActivation", "Gemm", "MatMul", "MatMulInteger",
    "MatMulIntegerToFloat", "QGemm", "QLinearMatMul", "TransposeMatMul", matmul_nbits.OPERATOR,
)  # fmt: skip
_CONVOLUTIONS = ("Conv", "ConvInteger", "FusedConv", "NhwcFusedConv", "QLinearConv")
_RECURRENT = ("DynamicQuantizeLSTM", "GRU", "LSTM", "RNN")
_ATTENTION = ("Attention", "MultiHeadAttention", "QAttention")
_INTEGERS = (
    "ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat", "QGemm",
    "QLinearConv", "QLinearMatMul",
)  # fmt: skip
"""Operators whose kernels multiply integers of 8 bits."""
_KINDS = {
    **dict.fromkeys(_PRODUCTS, "MatMul"), **dict.fromkeys(_CONVOLUTIONS, "Conv"), "FusedGemm": "Gemm", "Gemm": "Gemm",
    "QGemm": "Gemm", "QAttention": "Attention", "DynamicQuantizeLSTM": "LSTM",
}  # fmt: skip
"""The kind of operator that a kernel computes, where the kernel has another name."""
_PRECISIONS = {"float": "fp32", "double": "fp64", "float16": "fp16", "bfloat16": "bf16", "uint8": "int8"}
"""ONNX Runtime's name of a type -> its name in recipes, where the two differ."""
_MATRIX = 2
"""The number of axes of a matrix."""


class ProfiledTensor(NamedTuple):
    """A tensor in a profile: its type as ONNX Runtime writes it, for example "float16", and its shape."""

    kind: str
    shape: tuple[int, ...]

    @property
    def precision(self) -> str:
        """The name of the type in recipes."""
        return _PRECISIONS.get(self.kind, self.kind)


class Kernel(NamedTuple):
    """One call of a kernel in a profile: the name of the node, its operator, its inputs and its outputs."""

    node: str
    operator: str
    inputs: Sequence[ProfiledTensor]
    outputs: Sequence[ProfiledTensor]


def multiplications(directory: Path, inputs: Mapping[str, np.ndarray], *, provider: SessionProvider) -> Tally:
    """Return the precision of kernels, such as "int8" -> the number of multiplications in this precision.

    `directory/model.onnx` runs once on `inputs`. Raises StepError where ONNX Runtime cannot run the model.
    """
    return of_run([directory], lambda sessions: ort.run(sessions[0], inputs), provider=provider)


def of_run(
    directories: Sequence[Path],
    run: Callable[[list[onnxruntime.InferenceSession]], object],
    *,
    provider: SessionProvider,
) -> Tally:
    """Return the multiplications in each precision of all calls that `run` makes of the sessions of some models.

    The sessions have the optimizations that users get. Matrix products, convolutions, recurrent layers and attention
    are counted; all other operators need few multiplications. The precision of a product with weights of fewer bits
    names both, as in "int8 with int4 weights". An operator that runs several times counts once among the operators.
    Raises StepError where ONNX Runtime cannot run a model.
    """
    tally = Tally()
    seen: set[tuple[Path, str]] = set()
    with TemporaryDirectory() as folder:
        profile = Path(folder) / "run"
        sessions = [
            ort.session(each, threads=1, provider=provider, prepack=False, profile=profile) for each in directories
        ]
        run(sessions)
        for directory, session in zip(directories, sessions, strict=True):
            packed = matmul_nbits.precisions(directory)
            for kernel in _kernels(Path(session.end_profiling())):
                for precision, count in _multiplied(kernel, packed):
                    kind = _KINDS.get(kernel.operator, kernel.operator)
                    tally.add(kind, precision, count, seen=(directory, kernel.node) in seen)
                    seen.add((directory, kernel.node))
    return tally


def _kernels(profile: Path) -> Iterator[Kernel]:
    """Yield each call of a kernel in a profile of ONNX Runtime."""
    for event in json.loads(profile.read_text("utf-8")):
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time") and "op_name" in event["args"]:
            inputs, outputs = (
                [ProfiledTensor(kind, tuple(shape)) for tensor in event["args"][side] for kind, shape in tensor.items()]
                for side in ("input_type_shape", "output_type_shape")
            )
            yield Kernel(event["name"], event["args"]["op_name"], inputs, outputs)


def _multiplied(kernel: Kernel, packed: Mapping[tuple[int, ...], str]) -> list[tuple[str, int]]:
    """Return the precisions in which a kernel multiplies, each with the number of its multiplications.

    `packed` has the precision of each product with a packed weight, by the shape of the weight.
    """
    if not kernel.inputs or not kernel.outputs:
        return []
    if kernel.operator in _ATTENTION:
        return _of_attention(kernel)
    count = _COUNTS[kernel.operator](kernel) if kernel.operator in _COUNTS else 0
    return [(_precision(kernel, packed), count)] if count else []


def _precision(kernel: Kernel, packed: Mapping[tuple[int, ...], str]) -> str:
    """Return the precision in which a kernel other than attention multiplies."""
    if kernel.operator in _INTEGERS:
        return "int8"
    if kernel.operator == matmul_nbits.OPERATOR:
        first, weight = (each.shape for each in kernel.inputs[:2])
        return packed.get(weight) or matmul_nbits.of_fused(weight, first[-1])
    return kernel.inputs[0].precision


def _of_product(kernel: Kernel) -> int:
    """Return the multiplications of a matrix product: as many for each number of the result as the factors share.

    The factors share the last extent of the first one; a transposed matrix has it elsewhere.
    """
    shapes, result = [each.shape for each in kernel.inputs[:2]], kernel.outputs[0].shape
    if not shapes[0]:
        return 0
    transposable = [len(shape) for shape in shapes] == [_MATRIX, _MATRIX] and result
    return prod(result) * (prod(shapes[0]) // max(1, result[0]) if transposable else shapes[0][-1])


def _of_convolution(kernel: Kernel) -> int:
    """Return the multiplications of a convolution, whose filters are [outputs, inputs per group, height, width]."""
    index = 3 if kernel.operator == "QLinearConv" else 1
    filters = kernel.inputs[index].shape if len(kernel.inputs) > index else ()
    return prod(kernel.outputs[0].shape) * prod(filters[1:])


def _of_transposed_convolution(kernel: Kernel) -> int:
    return prod(kernel.inputs[0].shape) * prod(kernel.inputs[1].shape[1:])


def _of_recurrence(kernel: Kernel) -> int:
    """Return the multiplications of a recurrent layer: each step of each row takes all weights of input and state."""
    steps_and_rows = kernel.inputs[0].shape[:2]
    return prod(steps_and_rows) * (prod(kernel.inputs[1].shape) + prod(kernel.inputs[2].shape))


def _of_einsum(kernel: Kernel) -> int:
    """Return the least number of multiplications of an Einsum, whose equation no profile tells."""
    return max(prod(each.shape) for each in (kernel.outputs[0], *kernel.inputs))


def _of_attention(kernel: Kernel) -> list[tuple[str, int]]:
    """Return the products of queries, keys and values and, where it is fused, the projection that makes these three."""
    (first, second), result = kernel.inputs[:2], kernel.outputs[0].shape
    projects = len(second.shape) == _MATRIX  # the second input is the weight of the projection, not the keys
    keys = second.shape[1] if not projects and len(second.shape) > 1 else first.shape[1]
    scores = ("fp32" if kernel.operator == "QAttention" else first.precision, 2 * prod(result) * keys)
    return [(first.precision, prod(first.shape) * second.shape[1]), scores] if projects else [scores]


_COUNTS: Mapping[str, Callable[[Kernel], int]] = {
    **dict.fromkeys(_PRODUCTS, _of_product),
    **dict.fromkeys(_CONVOLUTIONS, _of_convolution),
    **dict.fromkeys(_RECURRENT, _of_recurrence),
    "ConvTranspose": _of_transposed_convolution,
    "Einsum": _of_einsum,
}
"""Operator -> the function that counts the multiplications of one of its kernels; others are not counted."""
