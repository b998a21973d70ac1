"""What a recipe says of Triton, held against what the package runs on and the TensorRT that builds its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.feasibility import overrides
from engine.runtimes import registry, triton_images
from engine.runtimes.profiles import greatest
from engine.runtimes.triton_images import RECIPE_PATH, REPOSITORY

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for what Triton would not load."""
    _image(loaded)
    _batches(loaded)
    overrides.check(loaded)


def _image(loaded: LoadedRecipe) -> None:
    """Refuse an image that is none, or that does not load what is built."""
    said = loaded.recipe.package.triton.image
    if said is None:
        return
    named = triton_images.read(said)
    if named is None:
        hint = f'write the release, "24.05", or the whole name, {REPOSITORY}:24.05-py3'
        raise loaded.error(f"`image` is none of Triton's: {said!r}", *RECIPE_PATH, hint=hint)
    registry.of(loaded.recipe).refuse_image(loaded, named)


def _batches(loaded: LoadedRecipe) -> None:
    """Refuse batches that no profile takes: an engine would not load, any other model was not validated with them."""
    recipe = loaded.recipe
    largest = greatest(recipe.profiles).get("batch")
    batch = recipe.package.triton.max_batch_size
    if largest is not None and batch is not None and batch > largest:
        what = f"Triton would send batches of {batch}, and the largest of the profiles is {largest}"
        hint = f"say max_batch_size: {largest}, or widen a profile"
        raise loaded.error(what, "package", "triton", "max_batch_size", hint=hint)
