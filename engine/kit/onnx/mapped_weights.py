"""Mapped weights: stored tensors whose numbers stay in files, and are mapped into memory where code reads them."""

# A mapped tensor is an ONNX tensor with external data whose file is named by an absolute path. Absolute paths exist in
# memory only: a model on disk names its files relative to its folder (`onnx_files.save`).

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING

from engine.kit.onnx import foreign_functions

if TYPE_CHECKING:
    import numpy as np
    import onnx

LEAST = 1 << 16
"""The number of bytes from which a tensor is mapped; smaller tensors are in memory."""
ALIGNMENT = 4096
"""The number of bytes of a page of memory. A tensor begins at a page, because files are mapped page by page."""
_PACKED_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
_spilled: ContextVar[IO[bytes] | None] = ContextVar("_spilled", default=None)


@dataclass(frozen=True)
class Extent:
    """The bytes of a tensor in a file."""

    path: Path
    offset: int
    length: int


def extent(tensor: onnx.TensorProto) -> Extent | None:
    """Return the place of a mapped tensor's bytes; None for any other tensor."""
    if tensor.data_location != tensor.EXTERNAL:
        return None
    place = {entry.key: entry.value for entry in tensor.external_data}
    if not os.path.isabs(place.get("location", "")):
        return None
    return Extent(Path(place["location"]), int(place.get("offset", 0)), int(place.get("length", 0)))


def refer(tensor: onnx.TensorProto, location: Path | str, *, offset: int, length: int) -> None:
    """Let a tensor name a place in a file instead of holding its own bytes."""
    tensor.ClearField("raw_data")
    tensor.data_location = tensor.EXTERNAL
    del tensor.external_data[:]
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))


def array(tensor: onnx.TensorProto) -> np.ndarray:
    """Return the numbers of a tensor; those of a mapped tensor are read from disk where they are used."""
    import onnx_ir as ir

    values: np.ndarray = ir.from_proto(tensor).numpy()
    return values


def stored_bytes(tensor: onnx.TensorProto) -> int:
    """Return the number of bytes that a tensor's type and extents need; numbers of less than a byte are packed."""
    from onnx import TensorProto, helper

    packed = _PACKED_BITS.get(TensorProto.DataType.Name(tensor.data_type))
    bits = packed or helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * 8
    return int(-(-prod(tensor.dims) * bits // 8))


def load(tensor: onnx.TensorProto) -> None:
    """Bring the bytes of a mapped tensor into memory; any other tensor stays as it is."""
    place = extent(tensor)
    if place is None:
        return
    with place.path.open("rb") as file:
        file.seek(place.offset)
        tensor.raw_data = file.read(place.length)
    tensor.ClearField("data_location")
    del tensor.external_data[:]


def tensor_of(values: np.ndarray, name: str) -> onnx.TensorProto:
    """Return a stored tensor; within `spilling`, the numbers of a large tensor are in a file, not in memory."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    file = _spilled.get()
    code = helper.np_dtype_to_tensor_dtype(values.dtype)
    tensor = TensorProto(name=name, data_type=code, dims=values.shape)
    if file is None or stored_bytes(tensor) < max(LEAST, values.nbytes):  # small, or packed
        return numpy_helper.from_array(values, name)
    store(tensor, [np.ascontiguousarray(values).view(np.uint8).data])
    return tensor


def spill(tensor: onnx.TensorProto) -> None:
    """Within `spilling`, move the raw data of a large tensor to the file; otherwise the tensor stays as it is."""
    if len(tensor.raw_data) >= LEAST:
        store(tensor, [memoryview(tensor.raw_data)])


def store(tensor: onnx.TensorProto, parts: Iterable[memoryview]) -> None:
    """Give a tensor its bytes, in parts: within `spilling` as a place in the file, otherwise in memory."""
    file = _spilled.get()
    if file is None:
        tensor.raw_data = b"".join(parts)
        return
    file.write(b"\0" * (-file.tell() % ALIGNMENT))
    offset = file.tell()
    length = sum(map(file.write, parts))
    file.flush()
    refer(tensor, file.name, offset=offset, length=length)


@contextlib.contextmanager
def spilling(folder: Path) -> Iterator[None]:
    """Let `tensor_of` and `spill` store large tensors in a new file in `folder`.

    The file stays when the context ends: the caller removes the folder, after it saved the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder.resolve(), prefix="weights-", delete=False) as file:
        token = _spilled.set(file.file)
        try:
            yield
        finally:
            _spilled.reset(token)


def readable_by_tools() -> AbstractContextManager[None]:
    """Let other packages read mapped tensors, too: their `onnx.numpy_helper.to_array` maps a mapped tensor."""

    def mapping(original: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        def to_array(tensor: onnx.TensorProto, base_dir: str = "") -> np.ndarray:
            return original(tensor, base_dir) if extent(tensor) is None else array(tensor)

        return to_array

    return foreign_functions.replaced(foreign_functions.TO_ARRAY, mapping)
