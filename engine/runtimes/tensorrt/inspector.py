"""Inspector: the types that the layers of an engine compute in, as TensorRT's engine inspector reports them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.runtimes.tensorrt import libraries
from engine.runtimes.tensorrt import log as trt_log
from engine.runtimes.tensorrt import network as trt_network
from engine.runtimes.tensorrt.api import trt

if TYPE_CHECKING:
    import tensorrt

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


def layer_types(plan: bytes, plugins: Sequence[Path] = ()) -> tuple[dict[str, int] | None, str]:
    """Return the number of layers by the type of their output; or None, and the reason why the types are not known.

    `plugins` are the libraries that the engine needs and does not hold. The engine must have been built with
    `profiling_verbosity: detailed`, by this TensorRT version, on this GPU.
    """
    logger, log = trt_log.begin()
    runtime = trt.Runtime(logger)
    runtime.engine_host_code_allowed = True  # safe: this process has just built the engine
    libraries.load(runtime, log, plugins)
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
        for layer in trt_network.layers(network)
        if layer.type.name in trt_network.PRODUCTS and trt_network.named(layer.get_output(0).dtype.name) == "fp32"
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
        yield next((name for words, name in _WORDS.items() if re.search(words, text)), trt_network.named(text))
