"""Which TensorRT loads an engine, and which of Triton's images has it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.runtimes import triton_images, versions
from engine.runtimes.triton_images import IMAGES, REPOSITORY, Image, ImageTag
from engine.server.found import Lacking
from engine.server.needs import Engine

USUAL = "25.06-py3"
"""The image for packages without engines: any has the backends; it is the latest in the table by Triton's own notes."""


def loads(engine: Engine, tensorrt: str) -> bool:
    """Tell whether a version of TensorRT loads an engine of a package."""
    return versions.loads_engine(tensorrt, built_by=engine.tensorrt, version_compatible=engine.version_compatible)


def tag_for(engines: Sequence[Engine], said: str | None) -> str:
    """Return the tag of the image that serves these engines, or any model where there are none.

    `said` is the recipe's own word. Raises Lacking, naming both versions, where no image fits.
    """
    if said is not None:
        named = triton_images.read(said)
        if named is None:
            raise Lacking(f"`image` is none of Triton's: {said!r}")
        _refuse_image(named, engines)
        return named.tag
    if not engines:
        return USUAL
    fitting = [image for image in reversed(IMAGES) if all(loads(engine, image.tensorrt) for engine in engines)]
    if fitting:
        return fitting[0].tag
    built = ", ".join(sorted({f"TensorRT {engine.tensorrt} ({engine.model})" for engine in engines}))
    known = ", ".join(f"{image.tag} has {image.tensorrt}" for image in IMAGES)
    raise Lacking(
        f"no image is known for engines of {built}: {known}",
        "name the image that has it: package: {triton: {image: YY.MM}}",
    )


def _refuse_image(named: ImageTag, engines: Sequence[Engine]) -> None:
    if engines and not named.loads_engines:
        raise Lacking(f"the image {named.tag} has no backend for TensorRT engines", f"use {named.release}-py3")
    image = named.image
    for engine in engines:
        if image is not None and not loads(engine, image.tensorrt):
            raise Lacking(
                f"{engine.model} was built by TensorRT {engine.tensorrt}, and the image {image.tag} has TensorRT "
                f"{image.tensorrt}",
                _other(engine),
            )


def _other(engine: Engine) -> str:
    fitting: list[Image] = [image for image in reversed(IMAGES) if loads(engine, image.tensorrt)]
    return f"the image {fitting[0].tag} fits" if fitting else "build the engine by the image's version"


def address_of(tag: str) -> str:
    """Return an image's whole name."""
    return f"{REPOSITORY}:{tag}"
