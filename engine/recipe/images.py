"""Images: the layout and size of the images that a recipe's model takes, and whether timm builds the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from engine import tasks
from engine.recipe import paths
from engine.recipe.schema import ModelSection, RecipePart
from engine.tasks import Modality

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

_INPUT_OPTIONS = ("layout", "size")
"""The options of `preprocess` that change the shape of the model's input, not only the values of the input."""


class Images(RecipePart):
    """The input of an image model: the order of its axes, and the pixels of each side of the square image."""

    layout: Literal["NCHW", "NHWC"] = "NCHW"
    size: Annotated[int, Field(ge=1)] | None = None
    """The pixels of each side of the image, or None for the size in the model's own settings."""


def of_recipe(recipe: Recipe) -> Images | None:
    """Return the input of the recipe's image model, or None for a model that timm does not build."""
    if not of_timm(recipe.model):
        return None
    return Images.model_validate({name: value for name, value in recipe.preprocess.items() if name in _INPUT_OPTIONS})


def of_timm(model: ModelSection) -> bool:
    """Tell whether the library timm builds the recipe's model.

    Timm builds the models of timm's repositories (`timm:NAME`, `hf:timm/NAME`) and checkpoints for a task that timm
    supports. For a timm checkpoint in a directory, the recipe must name the task: the directory can hold any
    architecture, and the key of a job needs the version of the right library (timm or transformers) before the job
    reads the directory.
    """
    return paths.is_of_timm(model.source.lower()) or (_for_timm(model.task) and not model.is_onnx_file)


def _for_timm(task: str | None) -> bool:
    """Tell whether timm builds a checkpoint for `task`. `task` is None if the recipe does not name the task."""
    return task is not None and tasks.find(task).by_timm


def modality(images: Images | None) -> Modality:
    """Return the input of a checkpoint's model: images where a step's option `images` is set, else text."""
    return Modality.TEXT if images is None else Modality.IMAGE


def library(images: Images | None) -> str:
    """Return the name of the library that builds a checkpoint's model: timm for images, transformers for text."""
    return "timm" if modality(images) is Modality.IMAGE else "transformers"
