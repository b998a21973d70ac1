"""Work: the multiplications of a model in each precision, counted from what ONNX Runtime's kernels report in a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.runtimes.onnxruntime import few_bits
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime.providers import SessionProvider
from engine.runtimes.runner import Tally

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

Shaped = tuple[str, tuple[int, ...]]
"""The type of a tensor as ONNX Runtime writes it, for example "float16", and the tensor's shape."""

_MATRIX = frozenset({
    "DynamicQuantizeMatMul", "FusedGemm", "FusedMatMul", "FusedMatMulActivation", "Gemm", "MatMul", "MatMulInteger",
    "MatMulIntegerToFloat", "QGemm", "QLinearMatMul", "TransposeMatMul", few_bits.OPERATOR,
})  # fmt: skip
_CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "FusedConv", "NhwcFusedConv", "QLinearConv"})
_ATTENTION = frozenset({"Attention", "MultiHeadAttention", "QAttention"})
_RECURRENT = frozenset({"DynamicQuantizeLSTM", "GRU", "LSTM", "RNN"})
_INTEGERS = frozenset({
    "ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat", "QGemm",
    "QLinearConv", "QLinearMatMul",
})  # fmt: skip
"""Operators whose kernels multiply integers of 8 bits."""
_KINDS = {
    **dict.fromkeys(_MATRIX, "MatMul"), **dict.fromkeys(_CONVOLUTIONS, "Conv"), "FusedGemm": "Gemm", "Gemm": "Gemm",
    "QGemm": "Gemm", "QAttention": "Attention", "DynamicQuantizeLSTM": "LSTM",
}  # fmt: skip
"""The kind of operator that a kernel computes, where the kernel has another name."""
_NAMES = {"float": "fp32", "double": "fp64", "float16": "fp16", "bfloat16": "bf16", "uint8": "int8"}
_LINEAR = 2
"""The number of axes of a weight matrix: inputs and outputs of a linear layer."""


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
            packed = few_bits.precisions(directory)
            for node, kernel in _kernels(Path(session.end_profiling())):
                taken, given = (_shaped(kernel[each]) for each in ("input_type_shape", "output_type_shape"))
                operator = str(kernel["op_name"])
                for precision, count in _of_kernel(operator, taken, given, packed):
                    kind = _KINDS.get(operator, operator)
                    tally.add(kind, precision, count, seen=(directory, node) in seen)
                    seen.add((directory, node))
    return tally


def _kernels(profile: Path) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return the name of each kernel of a session's runs, and what ONNX Runtime's profiler says about it."""
    events = json.loads(profile.read_text("utf-8"))
    named = (event for event in events if event.get("cat") == "Node" and str(event["name"]).endswith("_kernel_time"))
    return [(str(event["name"]), event["args"]) for event in named if "op_name" in event["args"]]


def _shaped(tensors: Sequence[Mapping[str, Sequence[int]]]) -> list[Shaped]:
    return [(kind, tuple(shape)) for tensor in tensors for kind, shape in tensor.items()]


def _of_kernel(
    operator: str, inputs: Sequence[Shaped], outputs: Sequence[Shaped], packed: Mapping[tuple[int, ...], str]
) -> list[tuple[str, int]]:
    """Return the precisions of one kernel with the number of multiplications in each.

    `packed` has the precision of each product with a packed weight, by the shape of the weight.
    """
    if not inputs or not outputs:
        return []
    (kind, first), result = inputs[0], outputs[0][1]
    if operator in _ATTENTION:
        return _of_attention(operator, inputs, result)
    precision = "int8" if operator in _INTEGERS else _NAMES.get(kind, kind)
    if operator == few_bits.OPERATOR:
        precision = packed.get(inputs[1][1]) or few_bits.of_fused(inputs[1][1], first[-1])
    count = _count(operator, first, inputs, result)
    return [(precision, count)] if count else []


def _count(operator: str, first: tuple[int, ...], inputs: Sequence[Shaped], result: tuple[int, ...]) -> int:
    """Return the number of multiplications of an operator other than attention; 0 for one that is not counted."""
    if operator in _MATRIX and first:
        return prod(result) * _inner(first, inputs[1][1] if len(inputs) > 1 else (), result)
    if operator in _CONVOLUTIONS:
        return prod(result) * prod(_filter(operator, inputs)[1:])
    if operator == "ConvTranspose":
        return prod(first) * prod(inputs[1][1][1:])
    if operator in _RECURRENT:  # each step of each row multiplies the input and the state by all of their weights
        return prod(first[:2]) * (prod(inputs[1][1]) + prod(inputs[2][1]))
    if operator == "Einsum":  # at least so many: the profile does not tell the equation
        return max(prod(result), *(prod(shape) for _, shape in inputs))
    return 0


def _of_attention(operator: str, inputs: Sequence[Shaped], result: tuple[int, ...]) -> list[tuple[str, int]]:
    """Return the work of fused attention: the products of queries, keys and values and, if fused, the projection."""
    (kind, first), (_, second) = inputs[0], inputs[1]
    apart = len(second) != _LINEAR  # queries, keys and values apart, not the weight of their projection
    scores = 2 * prod(result) * (second[1] if apart and len(second) > 1 else first[1])
    inner = ("fp32" if operator == "QAttention" else _NAMES.get(kind, kind), scores)
    if not apart:
        return [(_NAMES.get(kind, kind), prod(first) * second[1]), inner]
    return [inner]


def _inner(first: tuple[int, ...], second: tuple[int, ...], result: tuple[int, ...]) -> int:
    """Return the common extent of two factors: the extent of the first factor that the product does not have.

    A transposed first factor has its common extent elsewhere than in the last place.
    """
    if len(first) == _LINEAR and len(second) == _LINEAR and result:
        return prod(first) // max(1, result[0])
    return first[-1]


def _filter(operator: str, inputs: Sequence[Shaped]) -> tuple[int, ...]:
    """Return the shape of a convolution's filter: [outputs, inputs per group, height, width]."""
    place = 3 if operator == "QLinearConv" else 1
    return inputs[place][1] if len(inputs) > place else ()
