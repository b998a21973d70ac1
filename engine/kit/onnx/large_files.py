"""Large files: an ONNX file is parsed without the bytes of its weights, and written without holding them in memory."""

# An ONNX file is a protobuf message, so that fields are found without a parser: each begins with its number and with
# its length (https://protobuf.dev/programming-guides/encoding).

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights
from engine.kit.onnx.tensor_sizes import stored_bytes

if TYPE_CHECKING:
    import onnx

    Buffer = mmap.mmap | bytes

PARSED = 32 << 20
"""The number of bytes up to which a file is parsed as a whole."""
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
"""The numbers of three fields in onnx.proto: ModelProto.graph, GraphProto.initializer and TensorProto.raw_data."""
_VARINT, _EIGHT_BYTES, _WITH_LENGTH, _FOUR_BYTES = 0, 1, 2, 5
"""The kinds of fields in a protobuf message."""


@dataclass(frozen=True)
class _Field:
    """A field of a message: its number, and where the field, its value and its end lie in the file."""

    number: int
    begin: int
    value: int
    end: int


def parse(path: Path) -> onnx.ModelProto:
    """Return the model in a file; if the file is large, its large weights are mapped tensors.

    Raises an exception of protobuf, or ValueError, where the file is no ONNX model.
    """
    import onnx

    if path.stat().st_size <= PARSED:
        return onnx.load(str(path), load_external_data=False)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        whole = _Field(0, 0, 0, len(data))
        parts = [
            _graph(data, field, path) if field.number == _GRAPH else bytes(data[field.begin : field.end])
            for field in _fields(data, whole)
        ]
        return onnx.load_model_from_string(b"".join(parts))


def write(model: onnx.ModelProto, path: Path) -> None:
    """Write a model to a file with its mapped weights in it; the same model gives the same bytes.

    The file has the bytes that protobuf would write, but protobuf would hold them in memory several times.
    """
    import onnx

    large = {tensor.name for tensor in model.graph.initializer if mapped_weights.extent(tensor) is not None}
    if not large:
        path.write_bytes(model.SerializeToString(deterministic=True))
        return
    shell = onnx.ModelProto()
    shell.CopyFrom(model)
    del shell.graph.initializer[:]
    weights: list[bytes | onnx.TensorProto] = []
    for tensor in model.graph.initializer:
        weights += _written(tensor)
    graph = _inserted(shell.graph.SerializeToString(deterministic=True), _INITIALIZER, weights)
    graph = [_header(_GRAPH, sum(map(_length, graph))), *graph]
    shell.ClearField("graph")
    with path.open("wb") as file:
        for part in _inserted(shell.SerializeToString(deterministic=True), _GRAPH, graph):
            if isinstance(part, bytes):
                file.write(part)
            else:
                mapped_weights.write(part, file)


def _written(tensor: onnx.TensorProto) -> list[bytes | onnx.TensorProto]:
    """Return the parts of an initializer's field; in the place of a mapped tensor's bytes stands the tensor."""
    place = mapped_weights.extent(tensor)
    if place is None:
        content = tensor.SerializeToString(deterministic=True)
        return [_header(_INITIALIZER, len(content)), content]
    small = type(tensor)()
    small.CopyFrom(tensor)
    small.ClearField("data_location")
    del small.external_data[:]
    raw: list[bytes | onnx.TensorProto] = [_header(_RAW_DATA, place.length), tensor]
    parts = _inserted(small.SerializeToString(deterministic=True), _RAW_DATA, raw)
    return [_header(_INITIALIZER, sum(map(_length, parts))), *parts]


def _inserted(message: bytes, number: int, parts: Sequence[bytes | onnx.TensorProto]) -> list[bytes | onnx.TensorProto]:
    """Return a message in parts, with a field inserted: protobuf writes fields in the order of their numbers."""
    fields = _fields(message, _Field(0, 0, 0, len(message)))
    place = next((field.begin for field in fields if field.number > number), len(message))
    return [message[:place], *parts, message[place:]]


def _length(part: bytes | onnx.TensorProto) -> int:
    if isinstance(part, bytes):
        return len(part)
    place = mapped_weights.extent(part)
    return 0 if place is None else place.length


def _graph(data: Buffer, graph: _Field, path: Path) -> bytes:
    parts = [
        _initializer(data, field, path) if field.number == _INITIALIZER else bytes(data[field.begin : field.end])
        for field in _fields(data, graph)
    ]
    content = b"".join(parts)
    return _header(_GRAPH, len(content)) + content


def _initializer(data: Buffer, tensor: _Field, path: Path) -> bytes:
    """Return an initializer as it is, or with a reference to its bytes in the file instead of the bytes."""
    import onnx

    fields = list(_fields(data, tensor)) if tensor.end - tensor.value >= mapped_weights.LEAST else []
    raw = [field for field in fields if field.number == _RAW_DATA]
    if len(raw) != 1:
        return bytes(data[tensor.begin : tensor.end])
    small = onnx.TensorProto.FromString(b"".join(data[each.begin : each.end] for each in fields if each not in raw))
    length = raw[0].end - raw[0].value
    if length != stored_bytes(small):
        return bytes(data[tensor.begin : tensor.end])
    mapped_weights.refer(small, path.resolve(), offset=raw[0].value, length=length)
    content: bytes = small.SerializeToString(deterministic=True)
    return _header(_INITIALIZER, len(content)) + content


def _fields(data: Buffer, message: _Field) -> Iterator[_Field]:
    """Yield the fields of a message. Raises ValueError where a field does not fit into the message."""
    place = message.value
    while place < message.end:
        tag, value = _varint(data, place)
        kind = tag & 7
        if kind == _VARINT:
            _, end = _varint(data, value)
        elif kind == _WITH_LENGTH:
            length, value = _varint(data, value)
            end = value + length
        elif kind in {_EIGHT_BYTES, _FOUR_BYTES}:
            end = value + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise ValueError(f"a field of an unknown kind at byte {place}")
        if end > message.end:
            raise ValueError(f"the field at byte {place} is cut off")
        yield _Field(tag >> 3, place, value, end)
        place = end


def _varint(data: Buffer, place: int) -> tuple[int, int]:
    """Return the number that begins at a byte, seven bits in a byte, and the byte behind the number."""
    number = shift = 0
    while place < len(data) and shift < 70:  # noqa: PLR2004  ten bytes of seven bits
        byte = data[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004  the highest bit says that another byte follows
            return number, place
    raise ValueError(f"no number at byte {place}")


def _header(number: int, size: int) -> bytes:
    """Return the number and the length with which a field of `size` bytes begins."""
    length = bytearray()
    while size >= 0x80:  # noqa: PLR2004
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | _WITH_LENGTH, *length, size])
