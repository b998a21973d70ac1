"""Checks of a recipe against versions of TensorRT: those with its options, those for Jetsons, and that of its image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.gpus import called
from engine.runtimes import releases, triton_images
from engine.runtimes.tensorrt.spec import TensorRT
from engine.runtimes.triton_images import RECIPE_PATH, Image, ImageTag
from engine.text import versions

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import LoadedRecipeView

OLDEST = "10.0"
"""The oldest TensorRT version in the table. What this version has may be older."""
PATH = "tensorrt"
"""The section of a recipe with the options of TensorRT's builder."""
_LAST_WITH_DLA, _AGAIN = "10.7", "11.4.1"
"""The last TensorRT version with deep-learning accelerators (DLA) before a gap, and the first version after the gap.

The latter is also the first TensorRT 11 that supports JetPack for sure: 7.2.2 and later.
"""
_WITHOUT_JETPACK = ((11, 2), (11, 3), (11, 4, 0))
"""The beginnings of the versions that do not support JetPack, the software of Jetsons.

Source: "Migrating TensorRT from 10.x to 11.x on Jetson/JetPack" in NVIDIA's documentation of TensorRT 11.2.1, 11.3.0,
11.4.0 and 11.4.1. The page of 11.0.0 names JetPack as supported, so 11.0 and 11.1 are not refused. No page says which
10.x each JetPack supports beside the one that it brings.
"""
_PAGE = "https://docs.nvidia.com/deeplearning/tensorrt/11.4.1/api/migration/tensorrt-10x-to-11x-jetson.html"
_SOURCE = f"NVIDIA, Migrating TensorRT from 10.x to 11.x on Jetson/JetPack: {_PAGE}"
_ORIN = 87
"""The SM of Jetson Orin modules. JetPack 6.1 and 6.2 for them bring TensorRT 10.3.

Source: "Torch-TensorRT in JetPack", https://docs.pytorch.org/TensorRT/getting_started/jetpack.html
"""


@dataclass(frozen=True)
class Since:
    """One value of an option, the name of TensorRT's API that stands for it, and the version that brought the name.

    `at` is the path of the option below `tensorrt`. `value` is None for every value of the option. `nearest` is what a
    recipe for an older version can say instead.
    """

    at: tuple[str, ...]
    value: str | None
    api: str
    version: str = OLDEST
    nearest: str = "leave it out"

    @property
    def option(self) -> str:
        """The option as an error message names it: its value where only this value is newer, or else its name."""
        return self.value or ".".join(self.at)


TABLE = (
    Since(("compatibility",), "ampere-plus", "HardwareCompatibilityLevel.AMPERE_PLUS"),
    Since(("compatibility",), "same-compute-capability", "HardwareCompatibilityLevel.SAME_COMPUTE_CAPABILITY", "10.9"),
    Since(("tiling_optimization_level",), None, "IBuilderConfig.tiling_optimization_level", "10.8"),
    Since(("tiling_optimization_level",), "none", "TilingOptimizationLevel.NONE", "10.8"),
    Since(("tiling_optimization_level",), "fast", "TilingOptimizationLevel.FAST", "10.8"),
    Since(("tiling_optimization_level",), "moderate", "TilingOptimizationLevel.MODERATE", "10.8"),
    Since(("tiling_optimization_level",), "full", "TilingOptimizationLevel.FULL", "10.8"),
    Since(("memory_pool",), None, "IBuilderConfig.set_memory_pool_limit"),
    Since(("memory_pool", "workspace"), None, "MemoryPoolType.WORKSPACE"),
    Since(("memory_pool", "dla_managed_sram"), None, "MemoryPoolType.DLA_MANAGED_SRAM"),
    Since(("memory_pool", "dla_local_dram"), None, "MemoryPoolType.DLA_LOCAL_DRAM"),
    Since(("memory_pool", "dla_global_dram"), None, "MemoryPoolType.DLA_GLOBAL_DRAM"),
    Since(("memory_pool", "tactic_dram"), None, "MemoryPoolType.TACTIC_DRAM"),
    Since(("memory_pool", "tactic_shared_memory"), None, "MemoryPoolType.TACTIC_SHARED_MEMORY"),
    Since(("optimization_level",), None, "IBuilderConfig.builder_optimization_level"),
    Since(("max_aux_streams",), None, "IBuilderConfig.max_aux_streams"),
    Since(("avg_timing_iterations",), None, "IBuilderConfig.avg_timing_iterations"),
    Since(("profiling_verbosity",), "layer_names_only", "ProfilingVerbosity.LAYER_NAMES_ONLY"),
    Since(("profiling_verbosity",), "detailed", "ProfilingVerbosity.DETAILED"),
    Since(("profiling_verbosity",), "none", "ProfilingVerbosity.NONE"),
    Since(("timing_cache",), None, "IBuilderConfig.set_timing_cache"),
    Since(("plugins",), None, "IBuilderConfig.plugins_to_serialize"),
    Since(("version_compatible",), None, "BuilderFlag.VERSION_COMPATIBLE"),
    Since(("exclude_lean_runtime",), None, "BuilderFlag.EXCLUDE_LEAN_RUNTIME"),
    Since(("strip_plan",), None, "BuilderFlag.STRIP_PLAN"),
    Since(("refit",), None, "BuilderFlag.REFIT"),
    Since(("weight_streaming",), None, "BuilderFlag.WEIGHT_STREAMING"),
    Since(("sparse_weights",), None, "BuilderFlag.SPARSE_WEIGHTS"),
)
"""Rows with an option of a recipe each, as `engine.runtimes.tensorrt.options` sets it.

The table is derived from NVIDIA's Python bindings of every TensorRT version of PyPI from 10.0.1 to 11.4.0: the members
of the enums, and the attributes of IBuilderConfig. tests/support/tensorrt_names.py derives it again.
"""


def options_lacking(options: Mapping[str, Any], version: str) -> Iterator[Since]:
    """Yield the rows of the options that a recipe sets and that a version of TensorRT does not have yet."""
    for row in TABLE:
        if _is_set(options, row) and versions.is_later(row.version, than=version):
            yield row


def _is_set(options: Mapping[str, Any], row: Since) -> bool:
    value: Any = options
    for name in row.at:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value == row.value if row.value is not None else value is not None and value is not False


def refuse_on_jetsons(loaded: LoadedRecipeView, devices: Sequence[Gpu], version: str, at: Sequence[str]) -> None:
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


def refuse_image(loaded: LoadedRecipeView, named: ImageTag) -> None:
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
    elif version is not None and not versions.loads_engine(
        image.tensorrt, built_by=version, version_compatible=bool(loaded.recipe.tensorrt.get("version_compatible"))
    ):
        what = f"TensorRT {version} builds the engine, and the image {image.tag} loads those of {image.tensorrt}"
        hint = f'say version: "{releases.nearest(TensorRT.product.package, image.tensorrt)}"; {_others(version)}'
        raise loaded.error(what, *RECIPE_PATH, facts=[_source(image)], hint=hint)


def refuse_other_image(loaded: LoadedRecipeView, named: ImageTag) -> None:
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
