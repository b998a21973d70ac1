"""Drawn images: seeded pictures of flat shapes, as PNG files, where no images of users are at hand."""

from __future__ import annotations

import struct
import zlib

_SHAPES = 12
_NOISE = 6


def png(height: int, width: int, *, seed: int, is_grey: bool = False) -> bytes:
    """Return the bytes of a PNG file: discs and boxes of random colours on a gradient, with a little noise."""
    import numpy as np

    generator = np.random.default_rng(seed)
    down, right = np.mgrid[:height, :width] / max(height, width)
    pixels = generator.integers(0, 256, 3) * down[..., None] + generator.integers(0, 256, 3) * (1 - down[..., None])
    for number in range(_SHAPES):
        y, x, half = generator.uniform(0, 1), generator.uniform(0, 1), generator.uniform(0.03, 0.2)
        apart = np.abs(down - y), np.abs(right - x)
        inside = np.maximum(*apart) < half if number % 2 else np.hypot(*apart) < half
        pixels[inside] = generator.integers(0, 256, 3)
    pixels += generator.integers(-_NOISE, _NOISE + 1, pixels.shape[:2])[..., None]
    pixels, kind = (pixels[..., 0], 0) if is_grey else (pixels, 2)
    rows = np.zeros((height, 1 + pixels.size // height), np.uint8)  # each begins with the number of its filter: none
    rows[:, 1:] = pixels.clip(0, 255).reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = _chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)), _chunk(b"IEND", b"")
    return b"".join((b"\x89PNG\r\n\x1a\n", *chunks))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
