"""Images: the layout and size of the images that a recipe's model takes, and whether timm builds the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from engine import tasks
from engine.recipe.schema import ModelSection, RecipePart
from engine.tasks import Modality

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

_INPUT_OPTIONS = ("layout", "size")
"""The options of `preprocess` that change the shape of the model's input. Other options change only the values."""

_REPOSITORIES = ("timm:", "hf:timm/")


class Images(RecipePart):
    """The input of an image model: the order of its axes, and the pixels of each side of the square image."""

    layout: Literal["NCHW", "NHWC"] = "NCHW"
    size: Annotated[int, Field(ge=1)] | None = None
    """The pixels of each side of the image, or None for the size in the model's own settings."""


def of_recipe(recipe: Recipe) -> Images | None:
    """Return the input of the recipe's image model. For a model that timm does not build, return None."""
    if not of_timm(recipe.model):
        return None
    return Images.model_validate({name: value for name, value in recipe.preprocess.items() if name in _INPUT_OPTIONS})


def of_timm(model: ModelSection) -> bool:
    """Tell whether timm builds the model. Timm builds models of its own repositories, and checkpoints with its tasks.

    The recipe must name the task of a directory: the directory can hold any architecture, and the keys must count the
    right packages before the directory is read.
    """
    source = model.source.lower()
    return source.startswith(_REPOSITORIES) or (_for_timm(model.task) and not source.endswith(".onnx"))


def _for_timm(task: str | None) -> bool:
    """Tell whether timm builds a checkpoint for this task. None stands for a task that is not known yet."""
    return task is not None and tasks.find(task).by_timm


def modality(images: Images | None) -> Modality:
    """Return the input of a checkpoint's model: images where a step's option `images` is set, else text."""
    return Modality.TEXT if images is None else Modality.IMAGE


def library(images: Images | None) -> str:
    """Return the distribution that builds a checkpoint's model: timm for images, transformers for text."""
    return "timm" if modality(images) is Modality.IMAGE else "transformers"
