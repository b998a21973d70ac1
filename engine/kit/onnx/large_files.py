"""Large files: an ONNX file is parsed without the bytes of its weights, which stay in the file."""

# An ONNX file is a protobuf message, and protobuf copies all of it into memory. Neither onnx nor onnx_ir reads it
# otherwise. Fields are found without a parser: each begins with its number and its length
# (https://protobuf.dev/programming-guides/encoding).

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights

if TYPE_CHECKING:
    import onnx

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
        rest, graphs = _split(data, _Field(0, 0, 0, len(data)), _GRAPH)
        model = onnx.ModelProto.FromString(rest)
        for graph in graphs:
            rest, initializers = _split(data, graph, _INITIALIZER)
            model.graph.MergeFromString(rest)
            model.graph.initializer.extend(_initializer(data, each, path.resolve()) for each in initializers)
        return model


def _initializer(data: mmap.mmap, tensor: _Field, path: Path) -> onnx.TensorProto:
    """Return an initializer as it is, or with a reference to its bytes in the file instead of the bytes."""
    import onnx

    if tensor.end - tensor.value >= mapped_weights.LEAST:
        rest, raw = _split(data, tensor, _RAW_DATA)
        small = onnx.TensorProto.FromString(rest)
        if len(raw) == 1 and raw[0].end - raw[0].value == mapped_weights.stored_bytes(small):
            mapped_weights.refer(small, path, offset=raw[0].value, length=raw[0].end - raw[0].value)
            return small
    return onnx.TensorProto.FromString(data[tensor.value : tensor.end])


def _split(data: mmap.mmap, message: _Field, number: int) -> tuple[bytes, list[_Field]]:
    """Return a message without the fields of a number, and these fields."""
    fields = list(_fields(data, message))
    rest = b"".join(data[field.begin : field.end] for field in fields if field.number != number)
    return rest, [field for field in fields if field.number == number]


def _fields(data: mmap.mmap, message: _Field) -> Iterator[_Field]:
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


def _varint(data: mmap.mmap, place: int) -> tuple[int, int]:
    """Return the number that begins at a byte, seven bits in a byte, and the byte behind the number."""
    number = shift = 0
    while place < len(data) and shift < 70:  # noqa: PLR2004  ten bytes of seven bits
        byte = data[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004  the highest bit says that another byte follows
            return number, place
    raise ValueError(f"no number at byte {place}")
