"""Blocks: a weight in 4 or 8 bits, with a scale and a zero point for each block, as MatMulNBits stores it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

BLOCK = 32
"""The number of weights, along the axis that the product sums over, that share a scale and a zero point."""
_BYTE = 8
_NUMBERS = 1 << 22
"""The number of weights that are quantized at once; a weight may be larger than the memory that a step may take."""


@dataclass(frozen=True)
class Packed:
    """A weight of a layer with K inputs and N outputs, in blocks of `BLOCK` inputs."""

    codes: np.ndarray
    """uint8 [N, blocks, bytes of a block]; of two 4-bit numbers in a byte, the first has the lower four bits."""
    scales: np.ndarray
    """float32 [N, blocks]"""
    zero_points: np.ndarray
    """uint8 [N, bytes]; several 4-bit zero points are packed into bytes, as in `codes`."""


def pack(weight: np.ndarray, bits: int, *, outputs_first: bool = False) -> Packed:
    """Return a float32 weight [K, N], or with `outputs_first` [N, K], with `bits` bits for each number.

    The weight is read a part at a time, because it may be mapped from a file.
    """
    import numpy as np

    outputs, inputs = weight.shape if outputs_first else weight.shape[::-1]
    step = max(1, _NUMBERS // inputs)
    parts = []
    for start in range(0, outputs, step):
        part = weight[start : start + step].T if outputs_first else weight[:, start : start + step]
        parts.append(_quantize(bits)(np.ascontiguousarray(part)))
    codes, scales, zero_points = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Packed(codes, scales, zero_points.reshape(outputs, -1))


@cache
def _quantize(bits: int) -> Callable[[np.ndarray], Any]:
    """Return ONNX Runtime's function that rounds a weight [K, N] to `bits` bits, each block between its extremes."""
    import logging

    level = logging.getLogger().level
    from onnxruntime.quantization import matmul_nbits_quantizer as library

    logging.getLogger().setLevel(level)  # the import lets every package of the process log what it does
    config = library.DefaultWeightOnlyQuantConfig(block_size=BLOCK, is_symmetric=False, bits=bits)
    quantize: Callable[[np.ndarray], Any] = library.DefaultWeightOnlyQuantizer(config).qbits_block_quant
    return quantize
