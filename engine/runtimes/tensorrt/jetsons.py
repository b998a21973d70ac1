"""Jetsons: versions of TensorRT that do not support JetPack, the software of Jetsons, and those with DLA."""

# Source: "Migrating TensorRT from 10.x to 11.x on Jetson/JetPack" in NVIDIA's documentation of TensorRT 11.2.1, 11.3.0,
# 11.4.0 and 11.4.1. The page of 11.0.0 names JetPack as supported, so 11.0 and 11.1 are not refused. No page says which
# 10.x each JetPack supports beside the one that it brings.

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.gpus import called
from engine.runtimes import triton_images, versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.gpus import Gpu
    from engine.runtimes.recipes import LoadedRecipeView

_LAST_WITH_DLA, _AGAIN = "10.7", "11.4.1"
"""The last TensorRT version with deep-learning accelerators (DLA) before a gap, and the first version after the gap.

The latter is also the first TensorRT 11 that supports JetPack for sure: 7.2.2 and later.
"""
_WITHOUT_JETPACK = ((11, 2), (11, 3), (11, 4, 0))
_PAGE = "https://docs.nvidia.com/deeplearning/tensorrt/11.4.1/api/migration/tensorrt-10x-to-11x-jetson.html"
_SOURCE = f"NVIDIA, Migrating TensorRT from 10.x to 11.x on Jetson/JetPack: {_PAGE}"
_ORIN = 87
"""The SM of Jetson Orin modules. JetPack 6.1 and 6.2 for them bring TensorRT 10.3.

Source: "Torch-TensorRT in JetPack", https://docs.pytorch.org/TensorRT/getting_started/jetpack.html
"""


def refuse_version(loaded: LoadedRecipeView, devices: Sequence[Gpu], version: str, at: Sequence[str]) -> None:
    """Raise RecipeError for a version of TensorRT that NVIDIA did not release for Jetsons; `at` is its place."""
    jetsons = [gpu for gpu in devices if gpu.sold == "jetson"]
    numbers = versions.numbers(version)
    if jetsons and any(numbers[: len(without)] == without for without in _WITHOUT_JETPACK):
        what = f"there is no TensorRT {version} for {called(jetsons)}"
        facts = ["TensorRT 11.2 to 11.4.0 do not support JetPack", _SOURCE]
        first = '"10.3" for JetPack 6.1 or 6.2' if all(gpu.sm == _ORIN for gpu in jetsons) else '"10.x"'
        raise loaded.error(
            what, *at, facts=facts, hint=f'say version: {first}, or "{_AGAIN}" for JetPack 7.2.2 or later'
        )


def refuse_dla(loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError for memory of deep-learning accelerators (DLA) that the GPU or the TensorRT version lacks.

    Jetson AGX Orin and Orin NX have deep-learning accelerators (DLA). TensorRT 10.7 was the last version to support DLA
    until 11.4.1, which supports it on Jetson AGX Orin alone.
    """
    pool = next(name for name in loaded.recipe.tensorrt["memory_pool"] if name.startswith("dla"))
    at = ("tensorrt", "memory_pool", pool)
    without = [gpu for gpu in devices if not gpu.dla]
    if without:
        what = f"{called(without)} has no deep-learning accelerator (DLA)"
        raise loaded.error(what, *at, facts=["Jetson AGX Orin and Orin NX have one"], hint=f"leave {pool} out")
    tag = triton_images.tag_of(loaded.recipe)
    if tag is not None and tag.release and not tag.for_jetsons:
        return  # `feasibility.serving` refuses the image, and with it the version
    version = triton_images.tensorrt_for(loaded.recipe) or ""
    named, hint = ".".join(versions.parts(version)), f'say version: "{_LAST_WITH_DLA}", or leave the pool out'
    if versions.is_later(version, than=_LAST_WITH_DLA) and versions.is_later(_AGAIN, than=version):
        facts = [f"{_LAST_WITH_DLA} was the last that did, until {_AGAIN}"]
        raise loaded.error(f"TensorRT {named} does not support DLA", *at, facts=facts, hint=hint)
    others = [gpu for gpu in devices if not gpu.name.startswith("Jetson AGX Orin")]
    if others and versions.numbers(version)[:1] == (11,):
        facts = [f"{_AGAIN} supports it again, on Jetson AGX Orin alone", _SOURCE]
        raise loaded.error(f"TensorRT {named} has no DLA on {called(others)}", *at, facts=facts, hint=hint)
