"""Images: whether timm builds a recipe's model, and which images the model takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import tasks
from engine.recipe import paths
from engine.recipe.image_input import Images

if TYPE_CHECKING:
    from engine.recipe.schema import ModelSection, Recipe

_INPUT_OPTIONS = ("layout", "size")
"""The options of `preprocess` that change the shape of the model's input, not only the values of the input."""


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
