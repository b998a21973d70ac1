"""Inputs: the arrays of a request as tritonclient's input objects, or as raw bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine.client.model_metadata import ModelMetadata

if TYPE_CHECKING:
    import numpy as np


def infer_inputs(infer_input: Callable[..., Any], model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> list[Any]:
    """Return an input object for each of the model's inputs that `arrays` has.

    `infer_input` is the class InferInput of tritonclient.http or of tritonclient.grpc.
    """
    inputs = []
    for tensor in model.inputs:
        if tensor.name in arrays:
            value = infer_input(tensor.name, list(arrays[tensor.name].shape), tensor.datatype)
            value.set_data_from_numpy(arrays[tensor.name])
            inputs.append(value)
    return inputs


def raw_bytes(datatype: str, array: np.ndarray) -> bytes:
    """Return an array as raw tensor content of the KServe protocol: each text has its length in four bytes in front."""
    from tritonclient.utils import serialize_byte_tensor

    if datatype != "BYTES":
        return bytes(array.tobytes())
    return bytes(serialize_byte_tensor(array).item()) if array.size else b""
