"""Checks of a recipe for ONNX Runtime: its options, its Triton image, and the installed version."""

# `spec` imports this module by its name, so that the code of the checks is part of no key.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.runtimes import triton_images
from engine.runtimes.onnxruntime import providers
from engine.runtimes.onnxruntime.spec import GPU_DISTRIBUTION, IMAGE_WITH_TF32, OnnxRuntime, Provider
from engine.runtimes.preparation import Lowering
from engine.text import versions

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import LoadedRecipeView
    from engine.runtimes.triton_images import ImageTag

_WITH_BLOCKS = "1.24"
"""The oldest version of ONNX Runtime with which MatMulNBits and GatherBlockQuantized were tried in 4 and 8 bits."""
_WITH_TF32 = "1.18"
"""The oldest ONNX Runtime whose CUDA provider has the option `use_tf32`.

Source: pull request 19357 of microsoft/onnxruntime. The library of the CUDA provider in the wheel of onnxruntime-gpu
1.18.0 contains the text `use_tf32`, that of 1.17.1 does not.
"""
_BY_BUILD = (
    *("memory_pool", "optimization_level", "compatibility", "version_compatible", "exclude_lean_runtime"),
    *("tiling_optimization_level", "profiling_verbosity", "max_aux_streams", "avg_timing_iterations", "timing_cache"),
    *("plugins", "refit", "strip_plan", "weight_streaming", "sparse_weights"),
)
"""Options under `tensorrt` that only the step trt-build reads: the TensorRT provider has settings of its own."""


def options(loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError for an option under `tensorrt` that the provider ignores or TensorRT does not allow."""
    tensorrt = loaded.recipe.tensorrt
    for name in _BY_BUILD:
        if name in tensorrt:
            what = f"`tensorrt.{name}` is for engines that are built here; onnxruntime's provider builds its own"
            raise loaded.error(what, "tensorrt", name, hint="leave it out, or use runtime: tensorrt")
    if _by_tensorrt(loaded):
        from engine.runtimes.tensorrt import feasible

        feasible.options(loaded, devices)
    version = versions.parts(tensorrt.get("version") or providers.TENSORRT_MAJOR)
    if version[0] != providers.TENSORRT_MAJOR:
        what = f"onnxruntime's TensorRT provider does not run with TensorRT {version[0]}"
        facts = [f"every onnxruntime-gpu from 1.18 to 1.31.1 loads libnvinfer.so.{providers.TENSORRT_MAJOR}"]
        hint = f'say version: "{providers.TENSORRT_MAJOR}.x", or use runtime: tensorrt'
        raise loaded.error(what, "tensorrt", "version", facts=facts, hint=hint)


def operators(loaded: LoadedRecipeView, by_domain: Mapping[str, Sequence[str]]) -> None:
    """Raise RecipeError for operators that TensorRT does not have, where the TensorRT provider runs the graph."""
    if _by_tensorrt(loaded):
        from engine.runtimes.tensorrt import feasible

        feasible.operators(loaded, by_domain)


def image(loaded: LoadedRecipeView, named: ImageTag, runtime: OnnxRuntime) -> None:
    """Raise RecipeError for a precision that the TensorRT accelerator of an older image does not take.

    The accelerator runs with the TensorRT of the image, so `tensorrt.version` must agree with it. Every image with
    Triton's ONNX Runtime backend loads ONNX models.
    """
    recipe = loaded.recipe
    if _by_tensorrt(loaded):
        from engine.runtimes.tensorrt import version_checks

        version_checks.refuse_other_image(loaded, named)
        if recipe.precision != "fp32" and not providers.image_takes_types(named.release):
            what = f"the image {named.tag} computes {recipe.precision} graphs in other precisions: "
            hint = "use an image from 24.05 on, or provider: cuda"
            raise loaded.error(what + providers.WEAKLY_TYPED, *triton_images.RECIPE_PATH, hint=hint)
    if runtime.tf32_of(recipe) is not None and versions.is_later(IMAGE_WITH_TF32, than=named.release):
        what = f"the ONNX Runtime of the image {named.tag} has no option for TF32"
        hint = f"use an image from {IMAGE_WITH_TF32} on, or leave tf32 out"
        raise loaded.error(what, *triton_images.RECIPE_PATH, hint=hint)


def installation(loaded: LoadedRecipeView, installed: Callable[[str], str | None], runtime: OnnxRuntime) -> None:
    """Raise RecipeError where the installed ONNX Runtime lacks what the precision needs.

    Weights in blocks need newer operators, and `tf32` needs an option of the CUDA provider. Where the TensorRT provider
    takes no precision from the graph, it has no option for int4.
    """
    recipe, on_gpu = loaded.recipe, installed(GPU_DISTRIBUTION)
    if on_gpu is not None and runtime.tf32_of(recipe) is not None and versions.is_later(_WITH_TF32, than=on_gpu):
        what = f"onnxruntime-gpu {on_gpu} has no option for TF32"
        raise loaded.error(what, "tf32", hint=f"install onnxruntime-gpu {_WITH_TF32} or newer, or leave it out")
    in_int4 = _by_tensorrt(loaded) and recipe.precision == "int4"
    if in_int4 and on_gpu is not None and not providers.takes_types(on_gpu):
        what = f"onnxruntime-gpu {on_gpu} cannot compute in int4: {providers.WEAKLY_TYPED}"
        raise loaded.error(what, "precision", hint=providers.TYPED_HINT)
    version = installed(runtime.name)
    in_blocks = runtime.lowering(recipe) is Lowering.WEIGHTS_ONLY
    if in_blocks and version is not None and versions.is_later(_WITH_BLOCKS, than=version):
        what = f"onnxruntime {version} is too old to multiply with weights of {recipe.precision}"
        raise loaded.error(what, "precision", hint=f"install onnxruntime {_WITH_BLOCKS} or newer")


def _by_tensorrt(loaded: LoadedRecipeView) -> bool:
    return bool(loaded.recipe.target.provider == Provider.TENSORRT)
