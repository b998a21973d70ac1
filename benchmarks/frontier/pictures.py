"""Pictures: crops of the two photographs that scikit-learn brings, as inputs of models of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

SEED = 15
BATCH = 8
_LEAST = 120
"""The least pixels on the side of a crop."""


def crops(count: int, side: int, *, seed: int = SEED) -> np.ndarray:
    """Return crops of random places and sizes, scaled to a square: float32 [count, 3, side, side], 0 to 1."""
    import numpy as np
    import torch
    from sklearn import datasets

    photographs = datasets.load_sample_images().images
    generator = np.random.default_rng(seed)
    scaled = []
    for number in range(count):
        picture = photographs[number % len(photographs)]
        size = int(generator.integers(_LEAST, min(picture.shape[:2])))
        top, left = (int(generator.integers(0, extent - size)) for extent in picture.shape[:2])
        crop = np.ascontiguousarray(picture[top : top + size, left : left + size].transpose(2, 0, 1))
        tensor = torch.from_numpy(crop)[None].float() / 255
        scaled.append(torch.nn.functional.interpolate(tensor, size=(side, side), mode="bilinear", antialias=True))
    return np.asarray(torch.cat(scaled).numpy())


class ImageInputs:
    """Pictures as calls of a model, alone and in batches."""

    def __init__(self, name: str, pictures: np.ndarray) -> None:
        self._name, self._pictures = name, pictures

    def alone(self) -> list[Tensors]:
        """Return a call for each picture."""
        return self._calls(1)

    def batches(self) -> list[Tensors]:
        """Return a call for each `BATCH` pictures."""
        return self._calls(BATCH)

    def _calls(self, size: int) -> list[Tensors]:
        count: Sequence[int] = range(0, len(self._pictures), size)
        return [{self._name: self._pictures[start : start + size]} for start in count]
