"""Images: whether a recipe's model takes images, by way of timm, and how they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from engine import tasks
from engine.recipe.schema import ModelSection, RecipePart
from engine.tasks import Modality

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

SAID = ("layout", "size")
"""What of `preprocess` decides the model's input; the rest is about what happens to an image before."""

_REPOSITORIES = ("timm:", "hf:timm/")


class Images(RecipePart):
    """The input of an image model: where its channels stand, and how many pixels each side has."""

    layout: Literal["NCHW", "NHWC"] = "NCHW"
    size: Annotated[int, Field(ge=1)] | None = None
    """None: what the model's own settings say."""


def wanted(recipe: Recipe) -> Images | None:
    """Return how images come to the recipe's model; None for a model that timm has nothing to do with."""
    if not of_timm(recipe.model):
        return None
    return Images.model_validate({name: value for name, value in recipe.preprocess.items() if name in SAID})


def of_timm(model: ModelSection) -> bool:
    """Whether timm builds the model: it comes from timm's repositories, or is a checkpoint that classifies images.

    A directory may hold anything; so that the right packages count in the keys, the recipe says what it is for.
    """
    source = model.source.lower()
    return source.startswith(_REPOSITORIES) or (_for_timm(model.task) and not source.endswith(".onnx"))


def _for_timm(task: str | None) -> bool:
    """Whether timm builds a checkpoint that is for this task; None is no task that is known yet."""
    return task is not None and tasks.find(task).by_timm


def modality(images: Images | None) -> Modality:
    """Return what a checkpoint's model takes, by a step's options: `images` says how they come, where they do."""
    return Modality.TEXT if images is None else Modality.IMAGE


def library(images: Images | None) -> str:
    """Return the distribution that builds a checkpoint's model, by the same options."""
    return "timm" if modality(images) is Modality.IMAGE else "transformers"
