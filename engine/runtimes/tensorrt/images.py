"""Triton's image held against the TensorRT that builds the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.runtimes import triton_images
from engine.runtimes.triton_images import REPOSITORY, Image, Named, parts_of

if TYPE_CHECKING:
    from engine.runtimes.recipes import LoadedRecipe

_IMAGE = ("package", "triton", "image")


def refuse(loaded: LoadedRecipe, named: Named) -> None:
    """Raise RecipeError: an engine is loaded by the version that built it, and by no other."""
    if not named.loads_engines:
        what = f"the image {named.tag} has no backend for TensorRT engines"
        raise loaded.error(what, *_IMAGE, hint=f"use {named.release}-py3")
    wanted = loaded.recipe.tensorrt.get("version")
    image = named.image
    if image is None:
        _says_version(loaded, named, wanted)
    elif parts_of(image.tensorrt)[0] not in ("10", "11"):
        what = f"the image {image.tag} loads engines of TensorRT {image.tensorrt}, which is not supported"
        raise loaded.error(what, *_IMAGE, facts=[_source(image)], hint=_others("10.x"))
    elif wanted is not None and not _fits(loaded, wanted, image):
        what = f"TensorRT {wanted} builds the engine, and the image {image.tag} loads those of {image.tensorrt}"
        hint = f'say version: "{image.tensorrt}"; {_others(wanted)}'
        raise loaded.error(what, *_IMAGE, facts=[_source(image)], hint=hint)


def _fits(loaded: LoadedRecipe, wanted: str, image: Image) -> bool:
    """Tell whether the image loads what this version builds; a version-compatible engine also in later minors."""
    if not loaded.recipe.tensorrt.get("version_compatible"):
        return triton_images.agrees(wanted, image.tensorrt)
    asked, found = parts_of(wanted), parts_of(image.tensorrt)
    return asked[0] == found[0] and [int(part) for part in asked] <= [int(part) for part in found[: len(asked)]]


def _says_version(loaded: LoadedRecipe, named: Named, wanted: str | None) -> None:
    """Refuse an image of which nothing is known where the recipe does not say its TensorRT either."""
    enough = 1 if loaded.recipe.tensorrt.get("version_compatible") else 2
    if wanted is not None and len(parts_of(wanted)) >= enough:
        return
    what = f"which TensorRT the image {named.tag} loads engines with is not known here"
    facts = [f"known: {', '.join(f'{image.tag} ({image.tensorrt})' for image in triton_images.IMAGES)}"]
    look = f"docker run --rm {REPOSITORY}:{named.tag} dpkg-query -W libnvinfer-bin"
    hint = f'say its minor version, as in tensorrt: {{version: "10.7"}}; this prints it: {look}'
    raise loaded.error(what, *_IMAGE, facts=facts, hint=hint)


def _source(image: Image) -> str:
    title, address = triton_images.SOURCES[image.sources[0]]
    return f"{title}: {address}"


def _others(wanted: str) -> str:
    fitting = [image for image in triton_images.with_version(wanted) if parts_of(image.tensorrt)[0] in ("10", "11")]
    if fitting:
        return f"the nearest image that is known for it: {fitting[0].tag}"
    return f"no image is known for TensorRT {wanted}"
