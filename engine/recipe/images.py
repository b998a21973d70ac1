"""Images: whether a recipe's model takes images, by way of timm, and how they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from engine.recipe.schema import Model, ModelSection

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

TASK = "image-classification"
SAID = ("layout", "size")
"""What of `preprocess` decides the model's input; the rest is about what happens to an image before."""

_REPOSITORIES = ("timm:", "hf:timm/")


class Images(Model):
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
    return source.startswith(_REPOSITORIES) or (model.task == TASK and not source.endswith(".onnx"))
