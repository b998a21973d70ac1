"""Image input: the layout and the size of the images that a model takes, and the library that loads the model."""

from collections.abc import Mapping
from typing import Any, Literal

from engine.recipe.values import RecipePart


class Images(RecipePart):
    """The input of an image model: the order of its axes, its size in pixels, and the library that loads it."""

    layout: Literal["NCHW", "NHWC"] = "NCHW"
    size: tuple[int, int] | None = None
    """The height and the width of the images, or None for the size in the model's own settings."""
    library: Literal["transformers", "timm"] | None = "transformers"
    """The library that loads the model; None for an ONNX file."""


def of(preprocess: Mapping[str, Any], library: Literal["transformers", "timm"] | None) -> Images:
    """Return the input of an image model for the section `preprocess` of a recipe."""
    size = preprocess.get("crop", preprocess.get("size"))
    if isinstance(size, Mapping):
        size = (size["height"], size["width"]) if "height" in size else None
    elif size is not None:
        size = (size, size)
    return Images(layout=preprocess.get("layout", "NCHW"), size=size, library=library)


def library(images: Images | None) -> str:
    """Return the library that loads a checkpoint's model; `images` is None for a model of texts."""
    return "transformers" if images is None or images.library is None else images.library
