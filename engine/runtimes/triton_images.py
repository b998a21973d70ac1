"""Triton's container images. Each image has one version of TensorRT, and loads only engines of this version."""

# NVIDIA's full table is the "Frameworks Support Matrix" (docs.nvidia.com/deeplearning/frameworks/support-matrix). The
# table here has only what the documents in SOURCES say. For any other image, the recipe must set the version.

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.text import versions

if TYPE_CHECKING:
    from engine.runtimes.recipes import RecipeView

REPOSITORY = "nvcr.io/nvidia/tritonserver"
RECIPE_PATH = ("package", "triton", "image")
"""The path of the recipe's field that names the image of Triton."""

SOURCES: Mapping[str, tuple[str, str]] = {
    "backends-401": (
        "Triton, backend for TensorRT-LLM, issue 401",
        "https://github.com/triton-inference-server/tensorrtllm_backend/issues/401",
    ),
    "server-5975": ("Triton, issue 5975", "https://github.com/triton-inference-server/server/issues/5975"),
    "server-6959": ("Triton, issue 6959", "https://github.com/triton-inference-server/server/issues/6959"),
    "server-7374": ("Triton, issue 7374", "https://github.com/triton-inference-server/server/issues/7374"),
    "optimizer-1112": (
        "NVIDIA Model Optimizer, pull request 1112",
        "https://github.com/NVIDIA/Model-Optimizer/pull/1112",
    ),
    "hpa": (
        "uzunenes/triton-server-hpa, a plan of tensorrt:25.06-py3 served by tritonserver:25.06-py3",
        "https://github.com/uzunenes/triton-server-hpa/blob/189339dc376f0383da50f0874c4283d8c4d151a7/README.md",
    ),
    "reefscan": (
        "HrishiKabra/reefscan, notes on serving with tritonserver:24.10-py3",
        "https://github.com/HrishiKabra/reefscan/blob/d719113cccbebad1bfb412452a47df28d15d7e84/edge/serving/RUNPOD.md",
    ),
    "depth-anything": (
        "ika-rwth-aachen/ros2-depth-anything-v3-trt, on tensorrt:25.03-py3",
        "https://github.com/ika-rwth-aachen/ros2-depth-anything-v3-trt/blob/d13477d93cd95335e1281c386ac899a2b3a2b748/README.md",
    ),
    "server-7221": ("Triton, issue 7221", "https://github.com/triton-inference-server/server/issues/7221"),
}
"""Short name of a document -> the document's title and address.

The rows of `IMAGES` name their documents by the short names in `SOURCES`.
"""


_NO_ENGINES = ("trtllm-python-py3", "vllm-python-py3", "py3-sdk", "py3-min")
"""Flavours of Triton's images (the last part of the tag) that lack Triton's backend for TensorRT engines."""
_FOR_JETSONS = "-igpu"
_TAG = re.compile(r"([0-9]{2}\.(?:0[1-9]|1[0-2]))(?:-([a-z0-9-]+))?")
_WHOLE_NAME = r"((?:[\w.-]+(?::[0-9]+)?/)?(?:[a-z0-9._-]+/)*)([a-z0-9._-]+)(?::(\w[\w.-]{0,127}))?"
"""An image's whole name without a digest: registry with port, folders, repository and tag.

Source: the grammar in reference.go of distribution/reference, which docker uses.
"""
_DIGEST = r"sha256:[0-9a-f]{64}"


class ImageTag(NamedTuple):
    """The tag of an image of Triton: its release (YY.MM) and its flavour, the rest of the tag.

    Both are empty where the image's name does not tell the release; nothing is then known about the image.
    """

    release: str
    flavour: str
    whole_name: str = ""
    """The name in a recipe that names more than a tag: a mirror, an image of somebody else, or a digest."""

    @property
    def tag(self) -> str:
        """The whole tag of the image, for example `24.05-py3`; the whole name where the release is not known."""
        return f"{self.release}-{self.flavour}" if self.release else self.whole_name

    @property
    def address(self) -> str:
        """The whole name of the image, as docker pulls it."""
        return self.whole_name or f"{REPOSITORY}:{self.tag}"

    @property
    def loads_engines(self) -> bool:
        """Whether the image has Triton's backend for TensorRT engines.

        In Triton's images for language models neither of the two backends loads TensorRT engines; images for clients
        have no backend. Source: "backends-401".
        """
        return self.flavour not in _NO_ENGINES

    @property
    def for_jetsons(self) -> bool:
        """Whether the image is for Jetsons, whose GPU is integrated; other images are for servers."""
        return self.flavour.endswith(_FOR_JETSONS)

    @property
    def for_the_other_board(self) -> str:
        """The tag of the same image for servers, or for Jetsons."""
        return self.tag.removesuffix(_FOR_JETSONS) if self.for_jetsons else self.tag + _FOR_JETSONS

    @property
    def without_engines(self) -> tuple[str, str]:
        """The error message and the hint for engines and an image that does not load engines."""
        return f"the image {self.tag} has no backend for TensorRT engines", f"use {self.release}-py3"

    @property
    def image(self) -> Image | None:
        """The row of the table `IMAGES` for the image's tag; None where the table lacks the tag."""
        return next((image for image in IMAGES if image.tag == self.tag), None)


class Image(NamedTuple):
    """The version of TensorRT in an image of Triton, and the documents that state it."""

    named: ImageTag
    tensorrt: str
    sources: tuple[str, ...]

    @property
    def tag(self) -> str:
        """The tag of the image."""
        return self.named.tag


IMAGES = (
    Image(ImageTag("23.05", "py3"), "8.6.1.2", ("server-5975",)),
    Image(ImageTag("24.02", "py3"), "8.6.3.1", ("server-7221", "server-6959")),
    Image(ImageTag("24.05", "py3"), "10.0.1.6", ("server-7374",)),
    Image(ImageTag("24.10", "py3"), "10.5", ("reefscan",)),
    Image(ImageTag("25.03", "py3"), "10.9", ("depth-anything",)),  # version of tensorrt:25.03-py3
    Image(ImageTag("25.06", "py3"), "10.11", ("hpa",)),
    Image(ImageTag("26.02", "py3"), "10.15.1", ("optimizer-1112",)),  # version of tensorrt:26.02-py3
)


def read(name: str) -> ImageTag | None:
    """Return the tag in the name of an image of Triton; None for what is no name of an image with Triton.

    A name is `24.05`, `24.05-py3`, or the whole name of an image, also in another registry and with a digest. Mirrors
    of NVIDIA's images keep their tags: a tag is taken for NVIDIA's where the repository is called after Triton.
    Nothing is known about any other image, except that NVIDIA's other images hold no Triton.
    """
    plain, at, digest = name.partition("@")
    if at and not re.fullmatch(_DIGEST, digest):
        return None
    if match := _TAG.fullmatch(plain.removeprefix(f"{REPOSITORY}:")):
        ours = ImageTag(match[1], match[2] or "py3")
        return ours._replace(whole_name=f"{ours.address}@{digest}") if at else ours
    whole = re.fullmatch(_WHOLE_NAME, plain)
    if whole is None or not (at or "/" in plain or ":" in plain):
        return None
    folders, repository, tag = whole.groups(default="")
    of_triton, by_nvidia = "triton" in repository, folders.endswith("nvidia/")
    if (by_nvidia and not of_triton) or (f"{folders}{repository}" == REPOSITORY and not at):
        return None
    match = _TAG.fullmatch(tag) if of_triton else None
    return ImageTag(match[1], match[2] or "py3", whole_name=name) if match else ImageTag("", "", whole_name=name)


def tag_of(recipe: RecipeView) -> ImageTag | None:
    """Return the tag of the recipe's image of Triton; None for a recipe without one."""
    return read(recipe.package.triton.image or "")


def not_triton(name: str) -> str:
    """Return the error message for a name that `read` does not know."""
    return f"`image` is none of Triton's: {name!r}"


def tensorrt_for(recipe: RecipeView) -> str | None:
    """Return the version of TensorRT that a recipe asks for: `tensorrt.version`, or the version of its Triton image.

    If both agree, the version with more parts is returned: an image with TensorRT 10.11 pins the "10.x" of a recipe. It
    pins that of a version-compatible engine, too: such an engine is loaded by the same and later versions, and a later
    10.x than the image's might build it ("Version Compatibility" in NVIDIA's TensorRT documentation). An earlier
    version that the recipe says stays. The returned version is None where the recipe has neither `tensorrt.version` nor
    an image of the table `IMAGES`.
    """
    tag = tag_of(recipe)
    image = tag.image if tag is not None else None
    version: str | None = recipe.tensorrt.get("version")
    if image is None or version is None:
        return version if image is None else image.tensorrt
    return more_exact(version, image.tensorrt) if versions.agrees(version, image.tensorrt) else version


def not_verified(recipe: RecipeView) -> str | None:
    """Return why nobody knows whether the recipe's image loads the engine; None where four numbers prove that it does.

    A version-compatible engine needs the same or a later version alone, which `check` compares for the images of the
    table `IMAGES`. The returned text is also None for a recipe without an image.
    """
    tag = tag_of(recipe)
    if tag is None:
        return None
    built = tensorrt_for(recipe) or "any version"
    if tag.image is None:
        return f"TensorRT {built} builds the engine, and nothing is known about the TensorRT of the image {tag.tag}"
    if recipe.tensorrt.get("version_compatible"):
        return None
    if versions.compare(built, tag.image.tensorrt) is versions.VersionMatch.SAME:
        return None
    known = f"the image {tag.tag} is only known to have TensorRT {tag.image.tensorrt}"
    return f"TensorRT {built} builds the engine, and {known}; a plan loads where all four numbers are the same"


def more_exact(version: str, image: str) -> str:
    """Return the one of two versions that agree which has more numbers; `version` where both have as many."""
    return image if len(versions.numbers(image)) > len(versions.numbers(version)) else version


def with_version(requested: str) -> Sequence[Image]:
    """Return the images whose TensorRT agrees with the requested version, the latest image first."""
    return tuple(image for image in reversed(IMAGES) if versions.agrees(requested, image.tensorrt))
