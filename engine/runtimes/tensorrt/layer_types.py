"""Layer types: what the layers of a parsed network, and those of the built engine, compute in."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.runtimes.tensorrt import log as trt_log
from engine.runtimes.tensorrt import plugin_libraries
from engine.runtimes.tensorrt.api import trt

if TYPE_CHECKING:
    import tensorrt

_NAMES = {"FLOAT": "fp32", "HALF": "fp16", "BF16": "bf16", "INT8": "int8", "FP8": "fp8", "INT4": "int4", "FP4": "fp4",
          "INT32": "int32", "INT64": "int64", "BOOL": "bool", "UINT8": "uint8"}  # fmt: skip
"""TensorRT's DataType -> the name of the type in recipes."""
_DATA_ONLY = ("CONSTANT", "SHAPE")
PRODUCTS = ("MATRIX_MULTIPLY", "CONVOLUTION", "DECONVOLUTION")
"""The kinds of layers that are matrix products or convolutions."""
_WORDS = {
    r"\bBF16\b|BFloat16": "bf16",
    r"\bFP16\b|\bHalf\b": "fp16",
    r"\bFP8\b": "fp8",
    r"\bFP4\b": "fp4",
    r"\bINT8\b|\bInt8\b": "int8",
    r"\bINT4\b|\bInt4\b": "int4",
    r"\bINT32\b|\bInt32\b": "int32",
    r"\bINT64\b|\bInt64\b": "int64",
    r"\bBOOL\b|\bBool\b": "bool",
    r"\bFP32\b|\bFloat\b": "fp32",
}
"""Patterns of type names in the engine inspector's report, each with the type's name in recipes.

For fp16, TensorRT 10 reports "Row major linear FP16 format", and TensorRT 11 reports "Half".
"""
_SHOWN = 2
"""The largest number of TensorRT's log messages in the reason why the types of an engine's layers are not known."""


def of_network(network: tensorrt.INetworkDefinition) -> dict[str, int]:
    """Return the number of layers by the type of their output, without constants: {"fp16": 120, "fp32": 14}."""
    counted = Counter(
        named(layer.get_output(0).dtype.name)
        for layer in layers(network)
        if layer.num_outputs and layer.type.name not in _DATA_ONLY
    )
    return dict(sorted(counted.items()))


def products(network: tensorrt.INetworkDefinition) -> dict[str, str]:
    """Return the type of the factors of each matrix product and convolution, by the layer's name.

    A factor that is dequantized has the type before its dequantization; factors of two types have the first factor's
    type in floating point, as with quantized weights alone.
    """
    makers = {layer.get_output(0).name: layer for layer in layers(network) if layer.num_outputs}
    types = {}
    for layer in layers(network):
        if layer.type.name in PRODUCTS:
            factors = [factor for index in range(layer.num_inputs) if (factor := layer.get_input(index)) is not None]
            kinds = {_stored(factor, makers) for factor in factors[:2]}
            types[layer.name] = named(kinds.pop() if len(kinds) == 1 else factors[0].dtype.name)
    return types


def _stored(tensor: tensorrt.ITensor, makers: Mapping[str, tensorrt.ILayer]) -> str:
    """Return TensorRT's name for the type of a tensor before it was dequantized; else for the tensor's own type."""
    maker = makers.get(tensor.name)
    while maker is not None and maker.type.name == "SHUFFLE":  # the parser gives both factors one number of axes
        maker = makers.get(maker.get_input(0).name)
    dequantized = maker is not None and maker.type.name == "DEQUANTIZE"
    return str((maker.get_input(0) if maker is not None and dequantized else tensor).dtype.name)


def named(dtype: str) -> str:
    """Return the name that recipes use for one of TensorRT's data types."""
    return _NAMES.get(dtype, dtype.lower())


def layers(network: tensorrt.INetworkDefinition) -> Iterator[tensorrt.ILayer]:
    """Yield the layers of a network."""
    return (network.get_layer(number) for number in range(network.num_layers))


def shape_tensors(network: tensorrt.INetworkDefinition) -> list[str]:
    """Return the names of the inputs whose values are sizes of other tensors, such as the target of a Reshape."""
    inputs = (network.get_input(number) for number in range(network.num_inputs))
    return [value.name for value in inputs if value.is_shape_tensor]


def of_engine(plan: bytes, plugins: Sequence[Path] = ()) -> tuple[dict[str, int] | None, str]:
    """Return the number of layers by the type of their output; or None, and the reason why the types are not known.

    `plugins` are the libraries that the engine needs and does not hold. The engine must have been built with
    `profiling_verbosity: detailed`, by this TensorRT version, on this GPU.
    """
    logger, log = trt_log.begin()
    runtime = trt.Runtime(logger)
    runtime.engine_host_code_allowed = True  # safe: this process has just built the engine
    plugin_libraries.load(runtime, log, plugins)
    engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        return None, "; ".join(log.problems[-_SHOWN:]) or "TensorRT does not load it here"
    report = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    counted = counts(report)
    return (counted, "") if counted else (None, "the engine tells no more than the names of its layers")


def products_in_fp32(network: tensorrt.INetworkDefinition) -> list[str]:
    """Return the names of the matrix products and convolutions whose result is fp32."""
    return [
        layer.name
        for layer in layers(network)
        if layer.type.name in PRODUCTS and named(layer.get_output(0).dtype.name) == "fp32"
    ]


def counts(report: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of layers by the type of their first output, from the engine inspector's report.

    Source: NVIDIA, TensorRT documentation, "Engine Inspector", and for TensorRT 11 "Migrating IEngineInspector Usage".
    """
    counted = Counter(dtype for layer in report.get("Layers", ()) for dtype in _type_of(layer))
    return dict(sorted(counted.items()))


def _type_of(layer: Any) -> Iterator[str]:
    """Yield the type of a layer's first output; nothing for a layer of which the report has only the name."""
    outputs = layer.get("Outputs", ()) if isinstance(layer, Mapping) else ()
    for output in outputs[:1]:
        text = str(output.get("DataType") or output.get("Format/Datatype") or "")
        yield next((name for words, name in _WORDS.items() if re.search(words, text)), named(text))
