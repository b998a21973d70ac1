"""Low bits: numbers in int8, fp8 and int4, and the scales that bring them there and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["int8", "fp8", "int4"]

OPSETS: Mapping[Kind, int] = {"int8": 19, "fp8": 19, "int4": 21}
"""Since when QuantizeLinear and DequantizeLinear take scales in half precision, and scales per block."""
BLOCK = 128
"""Weights that share a scale in int4, along the axis that is summed over: TensorRT-RTX takes blocks of this size."""
CODES: Mapping[Kind, str] = {"int8": "INT8", "fp8": "FLOAT8E4M3FN", "int4": "INT4"}
"""ONNX's names of the types."""

# Symmetric, as TensorRT wants it: -128 and -8 stay unused. E4M3 ends at 448 (OCP 8-bit floating point specification).
_LARGEST: Mapping[Kind, float] = {"int8": 127.0, "fp8": 448.0, "int4": 7.0}


def scales(largest: np.ndarray, kind: Kind) -> np.ndarray:
    """Return the float32 scales with which `largest`, at least 0, becomes the largest number of the kind.

    Each is a number that fp16 holds exactly, rounded up: a graph whose scales are converted to fp16 later means the
    same. Where there is nothing but zeros the scale is 1.
    """
    import numpy as np

    exact = np.asarray(largest, np.float32) / np.float32(_LARGEST[kind])
    with np.errstate(over="ignore"):
        near = exact.astype(np.float16)
        held = np.where(near < exact, np.nextafter(near, np.float16(np.inf)), near).astype(np.float32)
    return np.where(exact > 0, np.where(np.isfinite(held), held, exact), np.float32(1))


def codes(values: np.ndarray, scale: np.ndarray, kind: Kind) -> np.ndarray:
    """Return the numbers of this kind that stand for `values`; what is beyond the largest becomes the largest."""
    import numpy as np
    from onnx import TensorProto, helper

    most = _LARGEST[kind]
    divided = np.clip(values / scale, -most, most)
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, CODES[kind]))
    return np.asarray((divided if kind == "fp8" else np.rint(divided)).astype(dtype))


def there_and_back(values: np.ndarray, scale: np.ndarray, kind: Kind) -> np.ndarray:
    """Return float32 numbers as they come out of quantizing and dequantizing."""
    import numpy as np

    return np.asarray(codes(values, scale, kind).astype(np.float32) * scale)


def weight_scales(weight: np.ndarray, kind: Kind) -> np.ndarray:
    """Return the scales of a weight [input, output]: [output] for int8, [blocks, output] for int4, [] for fp8.

    A floating-point type keeps its precision whatever the scale is: one for the whole weight is enough.
    """
    import numpy as np

    sizes = np.abs(weight)
    if kind == "fp8":
        return scales(sizes.max(), kind)
    if kind == "int8":
        return scales(sizes.max(axis=0), kind)
    return scales(sizes.reshape(-1, BLOCK, weight.shape[1]).max(axis=1), kind)


def spread(weight_scales: np.ndarray, kind: Kind) -> np.ndarray:
    """Return the scales of a weight in a shape that can be multiplied with it."""
    import numpy as np

    return np.repeat(weight_scales, BLOCK, axis=0) if kind == "int4" else weight_scales
