"""Low bits: numbers in int8, fp8 and int4, and the scales that convert float32 to these types and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["int8", "fp8", "int4"]

OPSETS: Mapping[Kind, int] = {"int8": 19, "fp8": 19, "int4": 21}
"""The first opset in which QuantizeLinear and DequantizeLinear take a type with half-precision or per-block scales."""
BLOCK = 128
"""The number of int4 weights that share one scale, along the axis that the MatMul sums over.

TensorRT-RTX accepts blocks of 128 weights.
"""
CODES: Mapping[Kind, str] = {"int8": "INT8", "fp8": "FLOAT8E4M3FN", "int4": "INT4"}
"""ONNX's name of each low-bit type."""

_LARGEST: Mapping[Kind, float] = {"int8": 127.0, "fp8": 448.0, "int4": 7.0}
"""The largest number of each low-bit type that is used.

TensorRT needs symmetric ranges, so -128 in int8 and -8 in int4 are not used. The largest number of fp8 (E4M3) is 448
(OCP 8-bit floating point specification).
"""


def scales(largest: np.ndarray, kind: Kind) -> np.ndarray:
    """Return the float32 scales that map `largest`, at least 0, to the largest number of the type.

    Each scale is rounded up to a number that fp16 holds exactly, so converting scales to fp16 later changes nothing.
    Where `largest` is 0, the scale is 1.
    """
    import numpy as np

    exact = np.asarray(largest, np.float32) / np.float32(_LARGEST[kind])
    with np.errstate(over="ignore"):
        near = exact.astype(np.float16)
        rounded_up = np.where(near < exact, np.nextafter(near, np.float16(np.inf)), near).astype(np.float32)
    return np.where(exact > 0, np.where(np.isfinite(rounded_up), rounded_up, exact), np.float32(1))


def codes(values: np.ndarray, scale: np.ndarray, kind: Kind) -> np.ndarray:
    """Return `values` divided by the scale, clipped to the type's largest number, and rounded to the type."""
    import numpy as np
    from onnx import TensorProto, helper

    most = _LARGEST[kind]
    divided = np.clip(values / scale, -most, most)
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, CODES[kind]))
    return np.asarray((divided if kind == "fp8" else np.rint(divided)).astype(dtype))


def there_and_back(values: np.ndarray, scale: np.ndarray, kind: Kind) -> np.ndarray:
    """Return float32 numbers after they were quantized and dequantized."""
    import numpy as np

    return np.asarray(codes(values, scale, kind).astype(np.float32) * scale)


def weight_scales(weight: np.ndarray, kind: Kind) -> np.ndarray:
    """Return the scales of a weight [input, output]: [output] for int8, [blocks, output] for int4, [] for fp8.

    A floating-point type is equally precise at any scale, so one fp8 scale for the whole weight is enough.
    """
    import numpy as np

    sizes = np.abs(weight)
    if kind == "fp8":
        return scales(sizes.max(), kind)
    if kind == "int8":
        return scales(sizes.max(axis=0), kind)
    return scales(sizes.reshape(-1, BLOCK, weight.shape[1]).max(axis=1), kind)


def spread(weight_scales: np.ndarray, kind: Kind) -> np.ndarray:
    """Return the scales of a weight in a shape that broadcasts to the weight."""
    import numpy as np

    return np.repeat(weight_scales, BLOCK, axis=0) if kind == "int4" else weight_scales
