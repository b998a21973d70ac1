"""External data: the weights of an ONNX model that lie in files beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import mapped_weights
from engine.kit.onnx.tensor_sizes import stored_bytes

if TYPE_CHECKING:
    import onnx

_ALONE = 1 << 20
"""The least number of bytes of a tensor with a file of its own."""
_FILES = 512
"""The largest number of files that the weights of a model have, about."""
_INLINE_BYTES = 1024  # smaller tensors stay in the model: shapes and scalars are readable without the data file


def read(tensor: onnx.TensorProto, directory: Path) -> None:
    """Bring a tensor's external data into memory; a tensor without external data stays as it is.

    Raises StepError where the tensor names a data file outside of `directory`, or where the data file is too short.
    """
    attach(tensor, directory)
    mapped_weights.load(tensor)


def attach(tensor: onnx.TensorProto, directory: Path) -> None:
    """Turn a tensor with external data into a mapped tensor; any other tensor stays as it is.

    Raises StepError where the tensor names a data file outside of `directory`, or where the data file is too short.
    """
    name = location(tensor)
    if not name:
        return
    path = (directory / name).resolve()
    if not path.is_relative_to(directory.resolve()):
        raise outside(tensor)
    place = {entry.key: entry.value for entry in tensor.external_data}
    offset, needed = int(place.get("offset", 0)), stored_bytes(tensor)
    least = max(int(place.get("length", 0)), needed)
    available = max(min(path.stat().st_size - offset, least), 0)
    if available < least:
        raise StepError(
            f"The external data of the ONNX model is cut off: {path.name}",
            [f"{tensor.name} needs {needed} bytes, {available} are there"],
            "download or export the model again",
        )
    mapped_weights.refer(tensor, path, offset=offset, length=needed)


def outside(tensor: onnx.TensorProto) -> StepError:
    """Return the error for a tensor whose data file is outside of the model's directory."""
    name = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    return StepError(
        f"The ONNX model wants to read a file outside of its directory: {name}",
        [f"for the tensor {tensor.name}"],
        "save the model with its data files beside it",
    )


def move(tensors: Iterable[onnx.TensorProto], path: Path) -> None:
    """Write every large tensor to the file `path`, in order, and leave a reference to that file in the tensor.

    The largest tensors have files of their own, `path` with a number added: a store keeps files of equal content once,
    so that a step which changes some tensors adds only these. The numbers of a mapped tensor are copied from file to
    file.
    """
    moved = list(tensors)
    for tensor in moved:
        _make_raw(tensor)
    alone = _least_alone(sum(map(size, moved)))
    numbers = itertools.count(1)
    with path.open("wb") as file:
        for tensor in moved:
            length = size(tensor)
            if length < _INLINE_BYTES:
                mapped_weights.load(tensor)
            elif length < alone:
                offset = mapped_weights.begin(file)
                mapped_weights.write(tensor, file)
                mapped_weights.refer(tensor, path.name, offset=offset, length=length)
            else:
                own = path.with_name(f"{path.name}-{next(numbers):03}")
                with own.open("wb") as apart:
                    mapped_weights.write(tensor, apart)
                mapped_weights.refer(tensor, own.name, offset=0, length=length)
        is_empty = not file.tell()
    if is_empty:
        path.unlink()


def _least_alone(total: int) -> int:
    """Return the number of bytes from which a tensor of a model with `total` bytes has a file of its own.

    The number is a power of two, so that it is the same before and after a step that changes the total a little.
    """
    return int(max(_ALONE, 1 << (total // _FILES).bit_length()))


def size(tensor: onnx.TensorProto) -> int:
    """Return the number of a tensor's raw bytes, in memory or mapped; 0 for external data that is not mapped."""
    place = mapped_weights.extent(tensor)
    return len(tensor.raw_data) if place is None else place.length


def location(tensor: onnx.TensorProto) -> str:
    """Return the file with a tensor's data, relative to the model's directory.

    The text is empty where the model holds the data, and for a mapped tensor.
    """
    import onnx

    if tensor.data_location != onnx.TensorProto.EXTERNAL or mapped_weights.extent(tensor) is not None:
        return ""
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _make_raw(tensor: onnx.TensorProto) -> None:
    """Turn typed data (float_data, int64_data, ...) into raw bytes, because only raw bytes can be external."""
    import onnx
    from onnx import numpy_helper

    external = tensor.data_location == onnx.TensorProto.EXTERNAL
    if external or tensor.HasField("raw_data") or tensor.data_type == onnx.TensorProto.STRING:
        return
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
