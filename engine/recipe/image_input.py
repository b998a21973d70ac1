"""Image input: the layout and size of the images that a model takes."""

from typing import Annotated, Literal

from pydantic import Field

from engine.recipe.values import RecipePart
from engine.tasks.task import Modality


class Images(RecipePart):
    """The input of an image model: the order of its axes, and the pixels of each side of the square image."""

    layout: Literal["NCHW", "NHWC"] = "NCHW"
    size: Annotated[int, Field(ge=1)] | None = None
    """The pixels of each side of the image, or None for the size in the model's own settings."""


def modality(images: Images | None) -> Modality:
    """Return the input of a checkpoint's model: images where a step's option `images` is set, else text."""
    return Modality.TEXT if images is None else Modality.IMAGE


def library(images: Images | None) -> str:
    """Return the name of the library that builds a checkpoint's model: timm for images, transformers for text."""
    return "timm" if modality(images) is Modality.IMAGE else "transformers"
