"""Typed networks: whether ONNX Runtime's TensorRT provider takes precisions from the graph, and its options if not."""

# Source: the machine code of `libonnxruntime_providers_tensorrt.so` in the wheels of onnxruntime-gpu on PyPI, 15
# versions from 1.17.1 to 1.31.1 (one for each minor version): the flags of both calls of createNetworkV2, and the
# version that createInferBuilder_INTERNAL gets. A test reads the installed wheel (test_typed_networks.py).

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import typed_versions

if TYPE_CHECKING:
    import onnx

_OPTIONS: Mapping[str, Mapping[str, str]] = {
    # The fallback keeps the squares and means of written-out normalizations in fp32, as the graph has them.
    "fp16": {"trt_fp16_enable": "1", "trt_layer_norm_fp32_fallback": "1"},
    "bf16": {"trt_bf16_enable": "1"},
    "int8": {"trt_int8_enable": "1"},
}
_NAMES = {
    "FLOAT16": "fp16", "BFLOAT16": "bf16", "INT4": "int4", "UINT4": "int4", "FLOAT8E4M3FN": "fp8", "FLOAT8E5M2": "fp8",
    "FLOAT4E2M1": "fp4",
}  # fmt: skip
"""ONNX's type -> the name of the precision in recipes, of types that are always a precision."""


def options(graph: onnx.ModelProto, version: str) -> dict[str, str]:
    """Return the options of the TensorRT provider that allow the precisions of a graph, by the option's name.

    `version` is the version of ONNX Runtime. The options are empty where the provider takes the precisions from the
    graph. Where it does not, it would compute everything in fp32; with the options TensorRT chooses, for each layer,
    fp32 or a precision that the options allow. Raises StepError for a precision that no option allows.
    """
    if typed_versions.takes_types(version):
        return {}
    precisions = stated(graph)
    beyond = sorted(precisions - _OPTIONS.keys())
    if beyond:
        raise StepError(
            f"ONNX Runtime {version} cannot compute in {' and '.join(beyond)} with TensorRT",
            [typed_versions.WEAKLY_TYPED, f"it has options for {', '.join(_OPTIONS)}"],
            typed_versions.HINT,
        )
    if not precisions:
        return {}
    allowed = ", ".join(sorted(precisions))
    print(f"onnxruntime-gpu {version}: {typed_versions.WEAKLY_TYPED}; allowed: {allowed}, TensorRT chooses by layer")
    return {name: value for each in sorted(precisions) for name, value in _OPTIONS[each].items()}


def stated(graph: onnx.ModelProto) -> frozenset[str]:
    """Return the precisions below fp32 that a graph states, by the types of its stored tensors, casts and Q/DQ nodes.

    Integers of 8 bits are int8 only where a QuantizeLinear or DequantizeLinear uses them, since other nodes may hold
    bytes or indices.
    """
    from onnx import TensorProto

    types = {tensor.data_type for tensor in onnx_files.tensors(graph)}
    types |= {value.type.tensor_type.elem_type for value in (*graph.graph.input, *graph.graph.output)}
    quantizes = False
    for node in onnx_files.nodes(graph):
        types |= {attribute.i for attribute in node.attribute if attribute.name in ("to", "dtype", "output_dtype")}
        quantizes |= node.op_type in ("QuantizeLinear", "DequantizeLinear")
    names = {TensorProto.DataType.Name(number) for number in types if number in TensorProto.DataType.values()}
    precisions = {_NAMES[name] for name in names if name in _NAMES}
    few = precisions & {"fp8", "int4", "fp4"}
    eight = names & {"INT8", "UINT8"} or not few
    return frozenset(precisions | ({"int8"} if quantizes and eight else set()))
