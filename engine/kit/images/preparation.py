"""Image preparation: turns image files into a model's input tensors, as the model's own image processor does."""

# Packages carry this file unchanged, so it imports numpy, Pillow and the standard library alone.

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

MOST_PIXELS = 50_000_000  # of an image that is decoded, and of one that an image is scaled to


class Preparation:
    """Decodes, resizes, crops, rescales, normalizes and pads images; several threads may use one preparation.

    Settings, all of them JSON:
    - `output`, `dtype`: name and type of the tensor; `last`: whether the channels are its last axis; `shape`: its
      height and width, None for any.
    - `mode`: RGB or L; `reversed`: whether RGB becomes BGR; `upright`: whether EXIF rotation is obeyed.
    - `on_white`: whether the one colour becomes white that a file without an alpha channel calls transparent.
    - `resize`: how the new size is computed, see `resized`; None keeps the size. `resample`: Pillow's filter.
    - `crop`: [height, width] of the centre that is kept; a smaller image gets a border of `fill`, a number a channel.
      `half_even`: how the place of the crop is rounded, as torchvision and timm do, or down, as transformers does.
    - `scale`, and then `normalize`: pairs of mean and deviation, each with a number a channel.
    - `pad`: "batch" pads at the bottom and on the right to the largest image, [height, width] to that size.
    - `mask`: the name of the tensor that has 1 where an image is and 0 where it is padded; None for no such tensor.
    - `sizes`: whether `tensors` also returns `image_sizes`. `most_pixels`: a limit instead of `MOST_PIXELS`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        from PIL import Image

        Image.init()  # not at the first file, which several threads may bring
        self.formats = [name for name in Image.ID if name != "EPS"]  # PostScript is a program, for Ghostscript
        self.settings = settings
        self.most = settings.get("most_pixels", MOST_PIXELS)
        self.channels = [2, 1, 0] if settings["reversed"] else list(range(len(settings["mode"])))
        self.values = _values(settings, len(self.channels))

    def tensors(self, files: Sequence[bytes]) -> dict[str, Any]:
        """Return the input tensors for a batch of image files.

        `output` has the shape [rows, channels, height, width] or [rows, height, width, channels]; `mask`, int64, [rows,
        height, width]; `image_sizes`, int64, [rows, 2]: height and width of each upright file. Raises ValueError for
        bytes that are no image, an image that is too large, and images whose tensors do not fit together or the model.
        """
        import numpy as np

        images, sizes = [], []
        for image in map(self.decoded, files):  # one at a time: a large file needs memory only until it is resized
            sizes.append((image.height, image.width))
            images.append(np.atleast_3d(np.asarray(self.cropped(self.resized(image)))))
        height, width = self._shape({pixels.shape[:2] for pixels in images})
        output = np.zeros((len(images), len(self.channels), height, width), self.values.dtype)
        mask = np.zeros((len(images), height, width), np.int64)
        for row, pixels in enumerate(images):
            tall, wide = pixels.shape[:2]
            mask[row, :tall, :wide] = 1
            for channel, own in enumerate(self.channels):
                output[row, channel, :tall, :wide] = self.values[channel][pixels[..., own]]
        if self.settings["last"]:
            output = np.ascontiguousarray(output.transpose(0, 2, 3, 1))
        tensors = {self.settings["output"]: output}
        if self.settings["mask"]:
            tensors[self.settings["mask"]] = mask
        if self.settings["sizes"]:
            tensors["image_sizes"] = np.array(sizes, np.int64).reshape(-1, 2)
        return tensors

    def decoded(self, file: bytes) -> Any:
        """Return a file's image, of an animation the first, in Pillow's mode `mode`. Raises ValueError for no image."""
        from PIL import Image, ImageOps, UnidentifiedImageError

        try:
            image: Any = Image.open(io.BytesIO(file), formats=self.formats)
            self._refuse_large(image.width, image.height)  # as the header says: nothing is decoded yet
            if self.settings["upright"]:
                ImageOps.exif_transpose(image, in_place=True)
            image.load()
            image = image if image.mode == self.settings["mode"] else image.convert(self.settings["mode"])
            return _on_white(image) if self.settings["on_white"] else image
        except UnfitError:
            raise
        except UnidentifiedImageError as error:  # Pillow's message has an address in memory
            raise UnfitError(f"IMAGE: {len(file)} bytes that are no image that Pillow can read") from error
        except Exception as error:
            raise UnfitError(f"IMAGE: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}") from error

    def resized(self, image: Any) -> Any:
        """Return the image in the size of `resize`. Raises ValueError for a size of no pixel, or of too many.

        - {height, width}; or {max_height, max_width}: within these, the ratio of the sides kept, and rounded down.
        - {shortest_edge}; with `longest_edge`, the longer side has at most that size; with `multiple`, sides are cut,
          and with `divisor`, they grow.
        - {cover: [height, width]}, {inside: [height, width]}: covers this size, or lies inside of it; rounded.
        """
        how = self.settings["resize"]
        height, width = (image.height, image.width) if how is None else _target(how, image.height, image.width)
        if (width, height) == image.size:
            return image
        if min(width, height) < 1:
            raise UnfitError(f"IMAGE: {image.width} x {image.height} pixels would become {width} x {height}")
        self._refuse_large(width, height)
        return image.resize((width, height), self.settings["resample"])

    def cropped(self, image: Any) -> Any:
        """Return the centre of the image in the size `crop`, with a border where the image is smaller."""
        from PIL import Image

        if self.settings["crop"] is None:
            return image
        height, width = self.settings["crop"]
        left, top = ((own - kept) // 2 for own, kept in ((image.width, width), (image.height, height)))
        if self.settings["half_even"]:  # a border is rounded otherwise than a crop
            left = round((image.width - width) / 2) if left >= 0 else -((width - image.width) // 2)
            top = round((image.height - height) / 2) if top >= 0 else -((height - image.height) // 2)
        if left >= 0 and top >= 0:
            return image.crop((left, top, left + width, top + height))
        bordered = Image.new(image.mode, (width, height), tuple(self.settings["fill"]))
        bordered.paste(image, (-left, -top))
        return bordered

    def _shape(self, shapes: set[tuple[int, ...]]) -> tuple[int, int]:
        """Return height and width of the tensor for images of these shapes. Raises ValueError where there is none."""
        pad, fixed = self.settings["pad"], self.settings["shape"]
        height, width = (max(sides, default=0) for sides in ([shape[axis] for shape in shapes] for axis in (0, 1)))
        if pad is None and len(shapes) > 1:
            listed = ", ".join(sorted(f"{wide} x {tall}" for tall, wide in shapes))
            raise UnfitError(f"IMAGE: files of one request become tensors of one size, and these {listed} pixels")
        if isinstance(pad, list):
            fixed, (height, width) = pad, (max(height, pad[0]), max(width, pad[1]))
        if fixed[0] not in (None, height) or fixed[1] not in (None, width):
            tall, wide = (side or "any" for side in fixed)
            raise UnfitError(f"IMAGE: it becomes {width} x {height} pixels, and the model takes {wide} x {tall}")
        return height, width

    def _refuse_large(self, width: int, height: int) -> None:
        if width * height > self.most:
            raise UnfitError(f"IMAGE: {width} x {height} pixels; at most {self.most} pixels are taken")


class UnfitError(ValueError):
    """A file that cannot become a model's input, in one sentence."""


def _on_white(image: Any) -> Any:
    """Return an RGB image in which the transparent colour of its file, if there is one, is white, as in transformers.

    `load_image` of transformers drops an alpha channel before, but keeps the colour that a palette calls transparent.
    """
    from PIL import Image

    if image.info.get("transparency") is None:
        return image
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA")).convert("RGB")


def _values(settings: Mapping[str, Any], channels: int) -> Any:
    """Return what each of the 256 values of a pixel becomes, [channels, 256]: a table is faster, and has all bits."""
    import numpy as np

    # transformers rescales in 64 bits and normalizes in 32
    values: Any = np.tile(np.arange(256), (channels, 1))
    if settings["scale"] is not None:
        values = (values.astype(np.float64) * settings["scale"]).astype(np.float32)
    for mean, deviation in settings["normalize"]:
        values = values.astype(np.float32) - np.array(mean, np.float32)[:, None]
        values /= np.array(deviation, np.float32)[:, None]
    return values.astype(settings["dtype"])


def _target(how: Mapping[str, Any], height: int, width: int) -> tuple[int, int]:
    """Return the height and width that an image of this height and width is resized to; see `Preparation.resized`."""
    if "cover" in how or "inside" in how:
        tall, wide = how.get("cover") or how["inside"]
        ratio = (min if "cover" in how else max)(height / tall, width / wide)
        return max(1, round(height / ratio)), max(1, round(width / ratio))
    if "max_height" in how:
        scale = min(how["max_height"] / height, how["max_width"] / width)
        return int(height * scale), int(width * scale)
    if "height" in how:
        return how["height"], how["width"]
    short, longest, multiple = how["shortest_edge"], how.get("longest_edge"), how.get("multiple", 1)
    exact: float = short
    if longest is not None and max(height, width) / min(height, width) * short > longest:
        exact = longest * float(min(height, width)) / max(height, width)
        short = round(exact)
    if (height <= width and height == short) or (width <= height and width == short and multiple == 1):
        tall, wide = height, width
    else:
        tall, wide = (int(exact * height / width), short) if width < height else (short, int(exact * width / height))
    tall, wide, divisor = tall - tall % multiple, wide - wide % multiple, how.get("divisor", 1)
    return tall + -tall % divisor, wide + -wide % divisor
