"""Tensor sizes: how many bytes a stored tensor takes, by its type and its extents."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

BYTE = 8
"""The number of bits of a byte; numbers of fewer bits are packed."""
_PACKED_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}


def stored_bytes(tensor: onnx.TensorProto) -> int:
    """Return the number of bytes that a tensor's type and extents need; numbers of less than a byte are packed."""
    return int(prod(tensor.dims) * bits(tensor.data_type) + BYTE - 1) // BYTE


def bits(dtype: int) -> int:
    """Return how many bits an element of an ONNX type takes in memory."""
    import onnx
    from onnx import helper

    packed = _PACKED_BITS.get(onnx.TensorProto.DataType.Name(dtype))
    return packed or int(helper.tensor_dtype_to_np_dtype(dtype).itemsize) * BYTE
