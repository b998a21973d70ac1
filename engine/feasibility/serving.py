"""What a recipe says of Triton, held against what the package runs on and the TensorRT that builds its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import triton_images
from engine.feasibility import overrides
from engine.runtimes import registry
from engine.triton_images import REPOSITORY

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe

_IMAGE = ("package", "triton", "image")


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
        raise loaded.error(f"`image` is none of Triton's: {said!r}", *_IMAGE, hint=hint)
    registry.of(loaded.recipe).refuse_image(loaded, named)


def _batches(loaded: LoadedRecipe) -> None:
    """Refuse batches that no profile takes: an engine would not load, any other model was not validated with them."""
    recipe = loaded.recipe
    largest = [profile["batch"].max for profile in recipe.profiles if "batch" in profile]
    asked = recipe.package.triton.max_batch_size
    if largest and asked is not None and asked > max(largest):
        what = f"Triton would send batches of {asked}, and the largest of the profiles is {max(largest)}"
        hint = f"say max_batch_size: {max(largest)}, or widen a profile"
        raise loaded.error(what, "package", "triton", "max_batch_size", hint=hint)
