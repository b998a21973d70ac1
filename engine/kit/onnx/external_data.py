"""External data: the weights of an ONNX model that lie in files beside it."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError

if TYPE_CHECKING:
    import onnx

_ALIGNMENT = 4096  # weights are mapped into memory page by page
_INLINE_BYTES = 1024  # smaller tensors stay in the model: shapes and scalars are readable without the data file
_PACKED_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}


def read(tensor: onnx.TensorProto, directory: Path) -> None:
    """Bring a tensor's external data into memory; a tensor without external data stays as it is.

    The reader in the package onnx refuses files with several hard links, and every file in the store has several.
    Raises StepError where the tensor names a data file outside of `directory`, or where the data file is too short.
    """
    import onnx

    if not location(tensor):
        return
    place = {entry.key: entry.value for entry in tensor.external_data}
    path = directory / place.get("location", "")
    if not path.resolve().is_relative_to(directory.resolve()):
        raise StepError(
            f"The ONNX model wants to read a file outside of its directory: {place.get('location')}",
            [f"for the tensor {tensor.name}"],
            "save the model with its data files beside it",
        )
    with path.open("rb") as file:
        file.seek(int(place.get("offset", 0)))
        data = file.read(int(place["length"]) if "length" in place else -1)
    if len(data) < max(int(place.get("length", 0)), stored_bytes(tensor)):
        raise StepError(
            f"The external data of the ONNX model is cut off: {path.name}",
            [f"{tensor.name} needs {stored_bytes(tensor)} bytes, {len(data)} are there"],
            "download or export the model again",
        )
    tensor.raw_data = data
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]


def move(tensors: Iterable[onnx.TensorProto], path: Path) -> None:
    """Write every large tensor to the file `path`, in order, and leave a reference to that file in the tensor."""
    import onnx

    with path.open("wb") as file:
        for tensor in tensors:
            _make_raw(tensor)
            if len(tensor.raw_data) < _INLINE_BYTES:
                continue
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            place = {"location": path.name, "offset": file.tell(), "length": len(tensor.raw_data)}
            file.write(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            del tensor.external_data[:]
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))


def location(tensor: onnx.TensorProto) -> str:
    """Return the file with a tensor's data, relative to the model's directory; empty where the model holds the data."""
    import onnx

    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return ""
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def stored_bytes(tensor: onnx.TensorProto) -> int:
    """Return the number of bytes that a tensor's type and extents need; numbers of less than a byte are packed."""
    return int(prod(tensor.dims) * bits(tensor.data_type) + 7) // 8


def bits(dtype: int) -> int:
    """Return how many bits an element of an ONNX type takes in memory."""
    import onnx
    from onnx import helper

    packed = _PACKED_BITS.get(onnx.TensorProto.DataType.Name(dtype))
    return packed or int(helper.tensor_dtype_to_np_dtype(dtype).itemsize) * 8


def _make_raw(tensor: onnx.TensorProto) -> None:
    """Turn typed data (float_data, int64_data, ...) into raw bytes, because only raw bytes can be external."""
    import onnx
    from onnx import numpy_helper

    external = tensor.data_location == onnx.TensorProto.EXTERNAL
    if external or tensor.HasField("raw_data") or tensor.data_type == onnx.TensorProto.STRING:
        return
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
