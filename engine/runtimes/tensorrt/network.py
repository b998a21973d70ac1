"""Network: the types that the layers of a parsed, strongly typed network compute in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorrt

_NAMES = {"FLOAT": "fp32", "HALF": "fp16", "BF16": "bf16", "INT8": "int8", "FP8": "fp8", "INT4": "int4", "FP4": "fp4",
          "INT32": "int32", "INT64": "int64", "BOOL": "bool", "UINT8": "uint8"}  # fmt: skip
"""TensorRT's DataType -> the name of the type in recipes."""
_DATA_ONLY = ("CONSTANT", "SHAPE")


def types(network: tensorrt.INetworkDefinition) -> dict[str, int]:
    """Return the number of layers by the type of their output, without constants: {"fp16": 120, "fp32": 14}."""
    counted = Counter(
        named(layer.get_output(0).dtype.name)
        for layer in layers(network)
        if layer.num_outputs and layer.type.name not in _DATA_ONLY
    )
    return dict(sorted(counted.items()))


def named(dtype: str) -> str:
    """Return the name that recipes use for one of TensorRT's data types."""
    return _NAMES.get(dtype, dtype.lower())


def layers(network: tensorrt.INetworkDefinition) -> Iterator[tensorrt.ILayer]:
    """Yield the layers of a network."""
    return (network.get_layer(number) for number in range(network.num_layers))
