"""Pictures: crops of the two photographs that scikit-learn brings, some of them with lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    Tensors = Mapping[str, np.ndarray]

SEED = 15
BATCH = 8
_LEAST = 120
"""The least pixels on the side of a crop."""
_LETTERS, _GAP = (12, 34), (4, 60)
"""The range of the sizes of letters, and that of the gaps between lines, in pixels."""


def crops(
    count: int, side: int, texts: Sequence[str], *, low: float = 0.0, written: bool = False, seed: int = SEED
) -> np.ndarray:
    """Return crops of random places and sizes, scaled to a square: float32 [count, 3, side, side], `low` to 1.

    Lines of `texts` are printed on every second crop, or with `written` on every crop, as text in a scene. Two crops
    differ in place, size and text.
    """
    import numpy as np
    import PIL.Image
    from sklearn import datasets

    photographs = datasets.load_sample_images().images
    generator = np.random.default_rng(seed)
    scaled = []
    for number in range(count):
        picture = photographs[number // 2 % len(photographs)]
        size = int(generator.integers(_LEAST, min(picture.shape[:2])))
        top, left = (int(generator.integers(0, extent - size)) for extent in picture.shape[:2])
        crop = PIL.Image.fromarray(picture[top : top + size, left : left + size]).resize((side, side))
        if written or number % 2:
            _print(crop, texts, generator)
        scaled.append(np.asarray(crop, np.float32).transpose(2, 0, 1) / 255 * (1 - low) + low)
    return np.stack(scaled)


def _print(image: Image, texts: Sequence[str], generator: np.random.Generator) -> None:
    """Print lines of text of random sizes and colours on an image, some on a plain ground."""
    import PIL.ImageDraw
    import PIL.ImageFont

    draw, top, side = PIL.ImageDraw.Draw(image), 8, image.size[1]
    while top < side:
        font = PIL.ImageFont.load_default(size=int(generator.integers(*_LETTERS)))
        text = texts[int(generator.integers(len(texts)))]
        place = (int(generator.integers(side // 4)), top)
        ink = tuple(int(value) for value in generator.integers(0, 256, 3))
        box = draw.textbbox(place, text, font=font)
        if generator.integers(2):
            draw.rectangle(box, fill=tuple(255 - value for value in ink))
        draw.text(place, text, font=font, fill=ink)
        top = int(box[3] + generator.integers(*_GAP))


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
