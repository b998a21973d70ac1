"""Checks of Triton's image: the TensorRT in the image must load the engines that the recipe's TensorRT builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.runtimes import releases, triton_images, versions
from engine.runtimes.tensorrt.spec import TensorRT
from engine.runtimes.triton_images import RECIPE_PATH, Image, ImageTag

if TYPE_CHECKING:
    from engine.runtimes.recipes import LoadedRecipeView


def refuse(loaded: LoadedRecipeView, named: ImageTag) -> None:
    """Raise RecipeError where the image's TensorRT does not load the engines that the recipe's TensorRT builds."""
    if not named.loads_engines:
        what, hint = named.without_engines
        raise loaded.error(what, *RECIPE_PATH, hint=hint)
    version = loaded.recipe.tensorrt.get("version")
    image = named.image
    if image is None:
        _needs_version(loaded, named, version)
    elif not _is_supported(image):
        what = f"the image {image.tag} loads engines of TensorRT {image.tensorrt}, which is not supported"
        raise loaded.error(what, *RECIPE_PATH, facts=[_source(image)], hint=_others("10.x"))
    elif version is not None and not _loads(loaded, version, image):
        what = f"TensorRT {version} builds the engine, and the image {image.tag} loads those of {image.tensorrt}"
        hint = f'say version: "{releases.nearest(TensorRT.product.package, image.tensorrt)}"; {_others(version)}'
        raise loaded.error(what, *RECIPE_PATH, facts=[_source(image)], hint=hint)


def refuse_other(loaded: LoadedRecipeView, named: ImageTag) -> None:
    """Raise RecipeError where `tensorrt.version` is not the image's: ONNX Runtime's provider builds with the latter.

    Source: README of triton-inference-server/onnxruntime_backend, "ONNX Runtime with TensorRT optimization": the
    options of the build (workspace, level of the builder, cache of engines) go to the provider in the server.
    """
    version, image = loaded.recipe.tensorrt.get("version"), named.image
    if version is None or image is None or versions.agrees(version, image.tensorrt):
        return
    what = f"the recipe says TensorRT {version}, and the provider builds its engines with {image.tensorrt} of the image"
    what += f" {image.tag}"
    hint = "leave `tensorrt.version` out"
    if _is_supported(image):
        hint += f', or say version: "{releases.nearest(TensorRT.product.package, image.tensorrt)}"'
    raise loaded.error(what, *RECIPE_PATH, facts=[_source(image)], hint=hint)


def _loads(loaded: LoadedRecipeView, version: str, image: Image) -> bool:
    """Tell whether the image loads the engines that a version of TensorRT builds from the recipe."""
    compatible = bool(loaded.recipe.tensorrt.get("version_compatible"))
    return versions.loads_engine(image.tensorrt, built_by=version, version_compatible=compatible)


def _is_supported(image: Image) -> bool:
    return versions.parts(image.tensorrt)[0] in TensorRT.majors


def _needs_version(loaded: LoadedRecipeView, named: ImageTag, version: str | None) -> None:
    """Raise RecipeError for an image that the table `IMAGES` lacks, if the recipe does not fix TensorRT's version.

    For a version-compatible engine `tensorrt.version` must contain the major version; for any other engine it must
    contain the minor version, too.
    """
    enough = 1 if loaded.recipe.tensorrt.get("version_compatible") else 2
    if version is not None and len(versions.parts(version)) >= enough:
        return
    what = f"which TensorRT the image {named.tag} loads engines with is not known here"
    facts = [f"known: {', '.join(f'{image.tag} ({image.tensorrt})' for image in triton_images.IMAGES)}"]
    look = f"docker run --rm {named.address} dpkg-query -W libnvinfer-bin"
    hint = f'say its minor version, as in tensorrt: {{version: "10.7"}}; this prints it: {look}'
    raise loaded.error(what, *RECIPE_PATH, facts=facts, hint=hint)


def _source(image: Image) -> str:
    title, address = triton_images.SOURCES[image.sources[0]]
    return f"{title}: {address}"


def _others(version: str) -> str:
    fitting = [image for image in triton_images.with_version(version) if _is_supported(image)]
    if fitting:
        return f"the nearest image that is known for it: {fitting[0].tag}"
    return f"no image is known for TensorRT {version}"
