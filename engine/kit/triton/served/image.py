"""Image preprocessing: turns encoded images into the input tensor of an image model, as `{name}_preprocess`."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any


class Work:
    """Prepares images as timm does for evaluation (`transforms_imagenet_eval`).

    Settings: `size` (height, width), `mode` (RGB or L), `crop` (center, squash or border), `share` (the part of the
    scaled image that the crop keeps), `interpolation`, `mean`, `std`, `last` (whether the channels are the last axis)
    and `output` (the name of the tensor). As in timm, transparency is dropped and EXIF rotation is ignored.
    """

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        import numpy as np
        from PIL import Image

        self.height, self.width = settings["size"]
        self.scaled = tuple(math.floor(side / settings["share"]) for side in settings["size"])
        self.filter = Image.Resampling[settings["interpolation"].upper()]
        self.mode, self.crop = settings["mode"], settings["crop"]
        self.last, self.output = settings["last"], settings["output"]
        self.mean, self.std = (np.array(settings[name], dtype=np.float32) for name in ("mean", "std"))
        self.border = tuple(round(255 * mean) for mean in settings["mean"])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the images, float32 [rows, channels, height, width] or [rows, height, width, channels].

        Raises ValueError for bytes that Pillow cannot read as an image.
        """
        import numpy as np

        rows = given["IMAGE"].reshape(-1).tolist()
        channels = len(self.mean)
        made = np.empty((len(rows), self.height, self.width, channels), dtype=np.float32)
        for row, encoded in zip(made, rows, strict=True):
            row[:] = np.asarray(self.prepared(encoded)).reshape(row.shape)
        made /= np.float32(255)
        made -= self.mean
        made /= self.std
        return {self.output: made if self.last else np.ascontiguousarray(made.transpose(0, 3, 1, 2))}

    def prepared(self, encoded: bytes) -> Any:
        """Decode, scale and crop an image to the model's size. Raises ValueError for bytes that Pillow cannot read."""
        from PIL import Image, UnidentifiedImageError

        try:
            image = Image.open(io.BytesIO(encoded)).convert(self.mode)
        except UnidentifiedImageError as error:  # Pillow's message has an address in memory
            raise ValueError(f"IMAGE: {len(encoded)} bytes that are no image that Pillow can read") from error
        except Exception as error:
            raise ValueError(f"IMAGE: {type(error).__name__}: {str(error).splitlines()[0]}") from error
        size = self.target(image.width, image.height)
        return self.cut(image if size == image.size else image.resize(size, self.filter))

    def target(self, width: int, height: int) -> tuple[int, int]:
        """Return the width and height after scaling; `crop` decides which side of the image fits the model's size."""
        tall, wide = self.scaled
        if self.crop == "squash":
            return wide, tall
        if self.crop == "center" and tall == wide:  # torchvision's Resize rounds the other side down
            return (tall, int(tall * height / width)) if width <= height else (int(tall * width / height), tall)
        ratio = (max if self.crop == "border" else min)(height / tall, width / wide)
        return max(1, round(width / ratio)), max(1, round(height / ratio))

    def cut(self, image: Any) -> Any:
        """Return the centre of the image in the model's size, with a border where the image is smaller."""
        from PIL import Image

        left, top = (self._place(own, kept) for own, kept in zip(image.size, (self.width, self.height), strict=True))
        if left >= 0 and top >= 0:
            return image.crop((left, top, left + self.width, top + self.height))
        filler = self.border if self.crop == "border" else (0,) * len(self.mean)
        made = Image.new(self.mode, (self.width, self.height), filler if len(filler) > 1 else filler[0])
        made.paste(image, (-left, -top))
        return made

    @staticmethod
    def _place(own: int, kept: int) -> int:
        """Return where the crop begins on one axis; a negative number is the width of the border before the image."""
        return round((own - kept) / 2) if own >= kept else -((kept - own) // 2)
