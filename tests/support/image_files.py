"""Makers of image files as users have them: every mode of PNG, turned and animated files, and files that are none."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

GOOD = (
    "rgb",
    "jpeg",
    "grey",
    "bilevel",
    "palette",
    "palette_transparent",
    "alpha",
    "grey_alpha",
    "sixteen_bit",
    "turned",
    "turned_png",
    "mirrored",
    "animated_gif",
    "animated_png",
    "animated_webp",
    "cmyk",
    "webp",
    "bmp",
    "tiff",
    "odd",
    "wide",
    "tall",
    "tiny",
    "large",
    "jpeg_named_png",
)
"""The names of files that hold an image which every model can answer."""
BAD = ("broken", "truncated", "empty", "huge", "mislabelled")
"""The names of files that are no image, or one that is too large to decode."""
_ORIENTATION = 0x0112
_HEAD = 41
"""Bytes of a PNG up to its pixels: the signature, the header's chunk, and the start of the next one."""
_HUGE = 10_000
"""Pixels of each side of `huge`: 100 megapixels together."""


def write_files(folder: Path, seed: int = 0) -> dict[str, Path]:
    """Write each file of `GOOD` and `BAD` into the folder, and return the paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    return {**_good(folder, seed), **_bad(folder, seed)}


def write_photos(folder: Path, count: int, seed: int = 0, *, same_size: bool = False) -> list[Path]:
    """Write `count` PNG files with different pictures, of different sizes unless told, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(count):
        path = folder / f"photo{number:03d}.png"
        width, height = (70, 52) if same_size else (48 + 7 * (number % 5), 40 + 11 * (number % 4))
        picture(width, height, seed=seed + number).save(path)
        paths.append(path)
    return paths


def network() -> Any:
    """Return a small ONNX model of images of 8 x 8 pixels, with three classes."""
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).standard_normal((3 * 8 * 8, 3)).astype("float32")
    graph = helper.make_graph(
        [helper.make_node("Flatten", ["pixels"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])],
        "net",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def picture(width: int, height: int, seed: int = 0) -> Any:
    """Return an RGB picture of Pillow: waves of one colour, a patch of another, and a little noise."""
    from PIL import Image

    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:height, 0:width] / max(width, height)
    waves = np.sin(rows * random.uniform(2, 20) + columns * random.uniform(2, 20) + random.uniform(0, 6))
    pixels = 128 + 90 * waves[..., None] * random.uniform(-1, 1, 3)
    top, left = int(random.integers(0, max(1, height // 2))), int(random.integers(0, max(1, width // 2)))
    pixels[top : top + max(1, height // 2), left : left + max(1, width // 2)] = random.uniform(0, 255, 3)
    pixels += random.normal(0, 8, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"), "RGB")


def _good(folder: Path, seed: int) -> dict[str, Path]:
    shot = picture(67, 53, seed)
    flat = shot.quantize(8)
    frames = [picture(50, 40, seed + number) for number in (1, 2, 3)]
    animation = {"save_all": True, "append_images": frames[1:], "duration": 50}
    files: dict[str, tuple[str, Any, dict[str, Any]]] = {
        "rgb": ("png", shot, {}),
        "jpeg": ("jpg", shot, {"quality": 90}),
        "grey": ("png", shot.convert("L"), {}),
        "bilevel": ("png", shot.convert("1"), {}),
        "palette": ("png", shot.convert("P"), {}),
        "palette_transparent": ("png", flat, {"transparency": flat.getpixel((0, 0))}),
        "alpha": ("png", _with_alpha(shot), {}),
        "grey_alpha": ("png", _with_alpha(shot).convert("LA"), {}),
        "sixteen_bit": ("png", _sixteen_bit(shot), {}),
        "turned": ("jpg", shot, {"exif": _exif(6), "quality": 90}),
        "turned_png": ("png", shot, {"exif": _exif(8)}),
        "mirrored": ("jpg", shot, {"exif": _exif(5), "quality": 90}),
        "animated_gif": ("gif", frames[0], animation),
        "animated_png": ("png", frames[0], animation),
        "animated_webp": ("webp", frames[0], {**animation, "lossless": True}),
        "cmyk": ("jpg", shot.convert("CMYK"), {"quality": 90}),
        "webp": ("webp", shot, {"lossless": True}),
        "bmp": ("bmp", shot, {}),
        "tiff": ("tiff", shot, {}),
        "odd": ("png", picture(61, 37, seed + 4), {}),
        "wide": ("png", picture(200, 41, seed + 5), {}),
        "tall": ("png", picture(39, 170, seed + 6), {}),
        "tiny": ("png", picture(9, 7, seed + 7), {}),
        "large": ("jpg", picture(640, 480, seed + 8), {"quality": 90}),
    }
    paths = {name: folder / f"{name}.{ending}" for name, (ending, _, _) in files.items()}
    for name, (_, image, options) in files.items():
        image.save(paths[name], **options)
    paths["jpeg_named_png"] = folder / "jpeg_named_png.png"
    shot.save(paths["jpeg_named_png"], format="JPEG")
    return paths


def _bad(folder: Path, seed: int) -> dict[str, Path]:
    whole = folder / "whole.png"
    picture(67, 53, seed).save(whole)
    data = whole.read_bytes()
    whole.unlink()
    middle = len(data) // 2
    contents: dict[str, tuple[str, Callable[[], bytes]]] = {
        "broken": ("png", lambda: data[:_HEAD] + bytes(range(256)) * (len(data) // 256)),
        "truncated": ("png", lambda: data[:middle]),
        "empty": ("png", lambda: b""),
        "huge": ("png", huge),
        "mislabelled": ("png", lambda: b"This is a text, whatever its name says.\n" * 20),
    }
    paths = {name: folder / f"{name}.{ending}" for name, (ending, _) in contents.items()}
    for name, (_, content) in contents.items():
        paths[name].write_bytes(content())
    return paths


def huge(width: int = _HUGE, height: int = _HUGE) -> bytes:
    """Return a valid black PNG of 100 megapixels in a few kilobytes: one bit a pixel, packed by zlib."""
    row = bytes(1 + (width + 7) // 8)
    packer = zlib.compressobj(9)
    packed = b"".join([*(packer.compress(row) for _ in range(height)), packer.flush()])
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _with_alpha(image: Any) -> Any:
    """Return the image with an alpha channel that runs from left to right."""
    from PIL import Image

    ramp = np.tile(np.linspace(0, 255, image.width).astype("uint8"), (image.height, 1))
    copy = image.convert("RGBA")
    copy.putalpha(Image.fromarray(ramp, "L"))
    return copy


def _sixteen_bit(image: Any) -> Any:
    from PIL import Image

    return Image.fromarray(np.asarray(image.convert("L")).astype("uint16") * 257)


def _exif(orientation: int) -> Any:
    from PIL import Image

    exif = Image.Exif()
    exif[_ORIENTATION] = orientation
    return exif
