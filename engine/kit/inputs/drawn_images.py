"""Drawn images: seeded pictures of flat shapes, as PNG files, where no images of users are at hand."""

from __future__ import annotations

import io

_SHAPES = 12
_NOISE = 6


def png(height: int, width: int, *, seed: int, is_grey: bool = False) -> bytes:
    """Return the bytes of a PNG file: discs and boxes of random colours on a gradient, with a little noise."""
    import numpy as np
    from PIL import Image

    generator = np.random.default_rng(seed)
    down, right = np.mgrid[:height, :width] / max(height, width)
    pixels = generator.integers(0, 256, 3) * down[..., None] + generator.integers(0, 256, 3) * (1 - down[..., None])
    for number in range(_SHAPES):
        y, x, half = generator.uniform(0, 1), generator.uniform(0, 1), generator.uniform(0.03, 0.2)
        apart = np.abs(down - y), np.abs(right - x)
        inside = np.maximum(*apart) < half if number % 2 else np.hypot(*apart) < half
        pixels[inside] = generator.integers(0, 256, 3)
    pixels += generator.integers(-_NOISE, _NOISE + 1, pixels.shape[:2])[..., None]
    picture = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    picture.convert("L" if is_grey else "RGB").save(file := io.BytesIO(), "PNG", optimize=True)
    return file.getvalue()
