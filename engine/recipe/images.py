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
"""The options of `preprocess` that change the model's input tensor. The others change only the values in it."""

_REPOSITORIES = ("timm:", "hf:timm/")


class Images(RecipePart):
    """The input of an image model: the order of its axes, and the pixels of each side of the square image."""

    layout: Literal["NCHW", "NHWC"] = "NCHW"
    size: Annotated[int, Field(ge=1)] | None = None
    """None takes the size from the model's own settings."""


def of_recipe(recipe: Recipe) -> Images | None:
    """Return the input of the recipe's image model. For a model that timm does not build, return None."""
    if not of_timm(recipe.model):
        return None
    return Images.model_validate({name: value for name, value in recipe.preprocess.items() if name in _INPUT_OPTIONS})


def of_timm(model: ModelSection) -> bool:
    """Whether timm builds the model: a model of timm's repositories, or a checkpoint with a task for timm.

    A directory of a model can hold any architecture. The recipe names the task, because the keys must count the right
    packages before the directory is read.
    """
    source = model.source.lower()
    return source.startswith(_REPOSITORIES) or (_for_timm(model.task) and not source.endswith(".onnx"))


def _for_timm(task: str | None) -> bool:
    """Whether timm builds a checkpoint for this task. None stands for a task that is not known yet."""
    return task is not None and tasks.find(task).by_timm


def modality(images: Images | None) -> Modality:
    """Return the input of a checkpoint's model: images where a step's option `images` is set, else text."""
    return Modality.TEXT if images is None else Modality.IMAGE


def library(images: Images | None) -> str:
    """Return the distribution that builds a checkpoint's model: timm for images, transformers for text."""
    return "timm" if modality(images) is Modality.IMAGE else "transformers"
