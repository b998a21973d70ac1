"""Serving: checks `package.triton` against the profiles, and against the TensorRT that builds the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.feasibility import overrides, shapes
from engine.feasibility.facts import ModelFacts
from engine.runtimes import registry, triton_images
from engine.runtimes.profiles import greatest
from engine.runtimes.triton_images import RECIPE_PATH, REPOSITORY

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for an image, a max_batch_size or an override with which Triton would not load the package."""
    _image(loaded)
    _batches(loaded)
    overrides.check(loaded)


def _image(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for a name that is no image of Triton, or an image that does not load the built model."""
    name = loaded.recipe.package.triton.image
    if name is None:
        return
    tag = triton_images.read(name)
    if tag is None:
        hint = f'write the release, "24.05", or the whole name, {REPOSITORY}:24.05-py3'
        raise loaded.error(triton_images.not_triton(name), *RECIPE_PATH, hint=hint)
    registry.of(loaded.recipe).refuse_image(loaded, tag)


def _batches(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for a max_batch_size above the largest batch of the profiles.

    Triton does not load an engine if max_batch_size is larger than the largest batch of the engine's profiles. Triton
    loads an ONNX model with any max_batch_size, but the ONNX model is validated only up to the largest batch of the
    profiles.
    """
    _refuse_larger(loaded, greatest(loaded.recipe.profiles).get("batch"))


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for a max_batch_size above the largest batch of the profiles.

    The batch is the first axis of an input, whatever the model calls the axis.
    """
    leading = next(iter(facts.axes.values()), ())[:1]
    if loaded.recipe.package.triton.max_batch_size and leading:
        _refuse_larger(loaded, greatest(shapes.profiles(loaded, facts)).get(str(leading[0])))


def _refuse_larger(loaded: LoadedRecipe, largest: int | None) -> None:
    """Raise RecipeError where Triton would send larger batches than `largest`, the largest batch of the profiles."""
    batch = loaded.recipe.package.triton.max_batch_size
    if largest is not None and batch is not None and batch > largest:
        what = f"Triton would send batches of {batch}, and the largest of the profiles is {largest}"
        hint = f"say max_batch_size: {largest}, or widen a profile"
        raise loaded.error(what, "package", "triton", "max_batch_size", hint=hint)
