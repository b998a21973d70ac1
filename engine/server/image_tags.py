"""Image tags: which container image of Triton has a version of TensorRT that loads the engines of a package."""

from __future__ import annotations

from collections.abc import Sequence

from engine.runtimes import triton_images
from engine.runtimes.triton_images import IMAGES, Image, ImageTag
from engine.server.installation import Lacking
from engine.server.repository_needs import Engine
from engine.text import versions
from engine.text.versions import VersionMatch

USUAL = ImageTag("25.06", "py3")
"""The image for packages without TensorRT engines: the latest with release notes; each has ONNX and Python."""


def loads(engine: Engine, tensorrt: str) -> bool:
    """Tell whether the TensorRT of version `tensorrt` loads an engine of a package."""
    return versions.loads_engine(tensorrt, built_by=engine.tensorrt, version_compatible=engine.version_compatible)


def tag_for(engines: Sequence[Engine], name: str | None) -> ImageTag:
    """Return the tag of an image that serves `engines`; where `engines` is empty, any image fits.

    `name` is the image that the recipe names. Raises Lacking where no image fits; for TensorRT engines the error
    names the versions of TensorRT in the engines and in the images.
    """
    if name is not None:
        named = triton_images.read(name)
        if named is None:
            raise Lacking(triton_images.not_triton(name))
        _refuse_image(named, engines)
        return named
    if not engines:
        return USUAL
    image = _latest(engines)
    if image is not None:
        return image.named
    built = ", ".join(sorted({f"TensorRT {engine.tensorrt} ({engine.model})" for engine in engines}))
    table = ", ".join(f"{image.tag} has {image.tensorrt}" for image in IMAGES)
    raise Lacking(
        f"no image is known for engines of {built}: {table}",
        "name an image that loads these engines: package: {triton: {image: YY.MM}}",
    )


def _refuse_image(named: ImageTag, engines: Sequence[Engine]) -> None:
    if engines and not named.loads_engines:
        raise Lacking(*named.without_engines)
    image = named.image
    for engine in engines:
        if image is not None and not loads(engine, image.tensorrt):
            built, other = f"{engine.model} was built by TensorRT {engine.tensorrt}", _latest([engine])
            hint = f"the image {other.tag} fits" if other is not None else "build the engine by the image's version"
            raise Lacking(f"{built}, and the image {image.tag} has TensorRT {image.tensorrt}", hint)


def _latest(engines: Sequence[Engine]) -> Image | None:
    """Return the latest known image of Triton that loads all `engines`; None where no known image loads all of them."""
    fitting = (image for image in reversed(IMAGES) if all(loads(engine, image.tensorrt) for engine in engines))
    return next(fitting, None)


def not_verified(engines: Sequence[Engine], named: ImageTag) -> str:
    """Return which engines may not load in an image, because a version lacks its build; "" where four numbers agree."""
    tensorrt = named.image.tensorrt if named.image is not None else ""
    unsure = []
    for engine in engines:
        match = versions.loading(tensorrt, built_by=engine.tensorrt, version_compatible=engine.version_compatible)
        if match is VersionMatch.NOT_VERIFIED or not tensorrt:
            unsure.append(engine)
    built = ", ".join(sorted({engine.tensorrt for engine in unsure}))
    return f"not verified: engines of TensorRT {built}, an image of {tensorrt or 'an unknown version'}" if built else ""
