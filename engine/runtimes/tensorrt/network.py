"""Network: the types that the layers of a parsed, strongly typed network compute in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorrt

_NAMES = {"FLOAT": "fp32", "HALF": "fp16", "BF16": "bf16", "INT8": "int8", "FP8": "fp8", "INT4": "int4", "FP4": "fp4",
          "INT32": "int32", "INT64": "int64", "BOOL": "bool", "UINT8": "uint8"}  # fmt: skip
"""TensorRT's DataType -> the name of the type in recipes."""
_DATA_ONLY = ("CONSTANT", "SHAPE")
PRODUCTS = ("MATRIX_MULTIPLY", "CONVOLUTION", "DECONVOLUTION")
"""The kinds of layers that are matrix products or convolutions."""


def types(network: tensorrt.INetworkDefinition) -> dict[str, int]:
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
            factors = [factor for place in range(layer.num_inputs) if (factor := layer.get_input(place)) is not None]
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
