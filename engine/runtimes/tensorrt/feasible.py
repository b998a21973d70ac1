"""Checks of a recipe for TensorRT: the options under `tensorrt`, the operators of the model, and quantized models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any, cast

from engine import gpus
from engine.gpus import AMPERE, called
from engine.runtimes import releases, triton_images
from engine.runtimes.backends import Accelerator
from engine.runtimes.preparation import CONTRIBUTED
from engine.runtimes.registry import find, of
from engine.runtimes.tensorrt import version_checks
from engine.runtimes.tensorrt.spec import Engines, TensorRT
from engine.runtimes.tensorrt.version_checks import OLDEST
from engine.runtimes.triton_images import RECIPE_PATH, tensorrt_for
from engine.text import versions

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import LoadedRecipeView, RecipeView

_VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,3}(\.[x*])?")
_IsSet = Callable[[Any], object]
_ON_A_GPU = ("version_compatible", "exclude_lean_runtime", "refit", "strip_plan")
"""Options that TensorRT-RTX supports only with a GPU during the build, or with libraries that it does not ship."""
_NEED_GPU: tuple[tuple[str, _IsSet, str], ...] = (
    ("compatibility", lambda tensorrt: tensorrt.get("compatibility", "none") != "none",
     "leave it out: the engine is for the devices that `target.device` lists"),
    *((name, methodcaller("get", name), "leave it out, or use runtime: tensorrt") for name in _ON_A_GPU),
    ("timing_cache", lambda tensorrt: tensorrt.get("timing_cache"), "leave it out: it keeps nothing there"),
)  # fmt: skip
"""Rows (name, test, hint) of options that TensorRT-RTX (tensorrt-rtx 1.7) refuses or ignores where it builds without a
GPU."""
_READ = ("int8", "fp8", "int4")
"""The quantized types that TensorRT 10.0 and later read, and that recipes have a precision for.

int4 came with TensorRT 10.0, fp8 with 9.0 (docs/Changelog.md of onnx-tensorrt). fp4 (TensorRT 10.8) is no precision of
recipes.
"""
_NAMED = 4
"""The number of GPUs that a hint names."""


def options(loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError at the first option under `tensorrt` that TensorRT or the GPUs would ignore or do not allow."""
    tensorrt = loaded.recipe.tensorrt
    if not tensorrt:
        _architecture(loaded, devices)  # the image may say the version
        return
    _version(loaded)
    _architecture(loaded, devices)
    if _engines(loaded).product.anywhere:
        _without_gpu(loaded)
    _since(loaded)
    _stripped(loaded)
    _compatibility(loaded, devices)
    _workspace(loaded, devices)
    if any(pool.startswith("dla") for pool in tensorrt.get("memory_pool", {})):
        version_checks.refuse_dla(loaded, devices)
    if tensorrt.get("sparse_weights") and any(gpu.sm < AMPERE for gpu in devices):
        what = f"sparse weights need SM{AMPERE}: {called([gpu for gpu in devices if gpu.sm < AMPERE])} has no kernels"
        raise loaded.error(what, "tensorrt", "sparse_weights", hint="leave it out")


def operators(loaded: LoadedRecipeView, by_domain: Mapping[str, Sequence[str]]) -> None:
    """Raise RecipeError for operators that TensorRT does not have.

    Plugins (`tensorrt.plugins`) may add operators of domains other than ONNX's own.
    """
    if fused := by_domain.get(CONTRIBUTED):
        what = f"the graph was fused for ONNX Runtime, and TensorRT does not know its operators: {', '.join(fused)}"
        hint = "name the ONNX file as it was exported, TensorRT fuses on its own; or use onnxruntime, provider: cuda"
        raise loaded.error(what, "model", "source", facts=[f"they are of the domain {CONTRIBUTED}"], hint=hint)
    if by_domain and not loaded.recipe.tensorrt.get("plugins"):
        domain, names = next(iter(by_domain.items()))
        what = f"TensorRT does not know the model's operators of the domain {domain}: {', '.join(names)}"
        hint = (
            "export the model with ONNX's own operators; a library under tensorrt.plugins only helps where ONNX"
            " Runtime, which runs the original, knows the operators, too"
        )
        raise loaded.error(what, "model", "source", hint=hint)


def _engines(loaded: LoadedRecipeView) -> Engines:
    """Return the recipe's runtime if it builds engines; else TensorRT, which ONNX Runtime's provider uses."""
    runtime = of(loaded.recipe)
    return runtime if isinstance(runtime, Engines) else cast("Engines", find(TensorRT.name))


def _version(loaded: LoadedRecipeView) -> None:
    version = loaded.recipe.tensorrt.get("version")
    if version is None:
        return
    majors, name = _engines(loaded).majors, _engines(loaded).title
    if not _VERSION.fullmatch(version):
        hint = f'write "{majors[0]}.x", or a version such as "{majors[0]}.7"'
        raise loaded.error(f"`tensorrt.version` is no version: {version!r}", "tensorrt", "version", hint=hint)
    parts = versions.parts(version)
    if parts[0] not in majors:
        known = " and ".join(f"{major}.x" for major in majors)
        nearest = min(majors, key=lambda major: abs(int(major) - int(parts[0])))
        what = f"{name} {version} is not supported"
        hint = f'the nearest that is: "{nearest}.x"'
        raise loaded.error(what, "tensorrt", "version", facts=[f"supported: {known}"], hint=hint)


def _architecture(loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError for a TensorRT version, of the recipe or its image, that does not support the GPU yet.

    ONNX Runtime's TensorRT provider builds its engines with the TensorRT of the image.
    """
    recipe = loaded.recipe
    version = tensorrt_for(recipe)
    native = isinstance(of(recipe), TensorRT)
    if version is None or not (native or of(recipe).accelerator(recipe.target) is Accelerator.TENSORRT):
        return
    if native and versions.parts(version)[0] not in TensorRT.majors:
        return  # the version of an image: `version_checks.refuse_image` reports it better
    pinned = version != recipe.tensorrt.get("version")
    at = RECIPE_PATH if pinned else ("tensorrt", "version")
    if any(gpu.sold == "jetson" for gpu in devices):
        version_checks.refuse_on_jetsons(loaded, devices, version, at)
    for gpu in devices:
        if gpu.tensorrt != OLDEST and versions.is_later(gpu.tensorrt, than=version):
            what = f"TensorRT {version} builds nothing for {called([gpu])}"
            fact = f"{gpu.architecture} of SM{gpu.sm} came with TensorRT {gpu.tensorrt}"
            raise loaded.error(what, *at, facts=[fact], hint=_later(recipe, gpu.tensorrt))


def _later(recipe: RecipeView, version: str) -> str:
    """Return the hint to use a version of TensorRT or a later one: a version, or an image where the recipe names one.

    An image with an earlier TensorRT would refuse the version that the hint names.
    """
    tag = triton_images.tag_of(recipe)
    image = tag.image if tag is not None else None
    if image is None or not versions.is_later(version, than=image.tensorrt):
        return f'say version: "{version}" or later'
    fitting = [each for each in triton_images.IMAGES if not versions.is_later(version, than=each.tensorrt)]
    if not fitting:
        return f'leave the image out, and say version: "{version}" or later'
    hint = f"the nearest image that is known to have it: {fitting[0].tag}"
    requested = recipe.tensorrt.get("version")
    if requested is None or versions.agrees(requested, fitting[0].tensorrt):
        return hint
    return f'{hint}; and say version: "{releases.nearest(TensorRT.product.package, fitting[0].tensorrt)}"'


def _without_gpu(loaded: LoadedRecipeView) -> None:
    for name, is_set, hint in _NEED_GPU:
        if is_set(loaded.recipe.tensorrt):
            what = f"TensorRT-RTX builds without a GPU, and has no `{name}` there"
            # The recipe may say `compatibility: version-compatible` in place of `version_compatible: true`.
            at = name if loaded.position("tensorrt", name) else "compatibility"
            raise loaded.error(what, "tensorrt", at, hint=hint)


def _since(loaded: LoadedRecipeView) -> None:
    """Raise RecipeError for an option that the TensorRT version of the recipe, or of its image, does not have yet."""
    version = tensorrt_for(loaded.recipe)
    if version is None or not isinstance(of(loaded.recipe), TensorRT):
        return
    for row in version_checks.options_lacking(loaded.recipe.tensorrt, version):
        what = f"TensorRT {'.'.join(versions.parts(version))} has no `{row.option}`"
        facts = [f"it came with TensorRT {row.version} ({row.api})"]
        hint = f"{_later(loaded.recipe, row.version)}; or {row.nearest}"
        raise loaded.error(what, version_checks.PATH, *row.at, facts=facts, hint=hint)


def _stripped(loaded: LoadedRecipeView) -> None:
    """Raise RecipeError for an engine without weights in a recipe that states what its package serves.

    Such an engine answers only after a refit with the weights (NVIDIA, "Refitting an Engine"), and no step refits.
    Unproven: that Triton's TensorRT backend refits no engine.
    """
    if loaded.recipe.tensorrt.get("strip_plan") and loaded.position("package") is not None:
        what = "an engine that is built without its weights (strip_plan) cannot be served"
        facts = ["nothing in a package puts the weights back"]
        hint = "leave it out; or take `package` out, build with --to trt-build and refit the engine yourself"
        raise loaded.error(what, "tensorrt", "strip_plan", facts=facts, hint=hint)


def _compatibility(loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
    tensorrt = loaded.recipe.tensorrt
    too_old = [gpu for gpu in devices if gpu.sm < AMPERE]
    if tensorrt.get("compatibility") == "ampere-plus" and too_old:
        what = f"ampere-plus starts at SM{AMPERE}; the target is {called(too_old)}"
        raise loaded.error(what, "tensorrt", "compatibility", hint="use same-compute-capability")
    if tensorrt.get("exclude_lean_runtime") and not tensorrt.get("version_compatible"):
        what = "`exclude_lean_runtime` says what a version-compatible engine leaves out, and this is none"
        hint = "add version_compatible: true, or leave exclude_lean_runtime out"
        raise loaded.error(what, "tensorrt", "exclude_lean_runtime", hint=hint)


def _workspace(loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError for a workspace, in bytes, that is larger than the whole memory of a GPU."""
    workspace = loaded.recipe.tensorrt.get("memory_pool", {}).get("workspace")
    for name, gpu in zip(loaded.recipe.target.devices, devices, strict=True):
        if workspace is not None and workspace > gpu.memory_gib * 2**30:
            from engine.gpus.names import read_as  # other recipes do not wait for this import

            what = f"the workspace is larger than the memory of {called([gpu])}"
            hint = f"the GPU has {gpu.memory_gib} GiB: take a smaller workspace, or leave the limit out"
            facts = list(filter(None, [read_as(name)]))
            raise loaded.error(what, "tensorrt", "memory_pool", "workspace", facts=facts, hint=hint)


def quantized(loaded: LoadedRecipeView, types: Sequence[str], devices: Sequence[Gpu], runtime: Engines) -> None:
    """Raise RecipeError where TensorRT would not read the model's Q/DQ, or would compute in another precision.

    A strongly typed network computes in the types of the graph, whatever the recipe says. `types` are the types to
    which the model is quantized.
    """
    at = ("model", "source")
    unread = [kind for kind in types if kind not in _READ]
    if unread:
        what = f"the model is quantized to {' and '.join(unread)}, which this program does not build with TensorRT"
        facts = ["TensorRT's parser reads Q/DQ of int8, fp8 and int4, without zero points"]
        hint = "quantize it again with signed types and no zero points, as NVIDIA Model Optimizer does"
        raise loaded.error(what, *at, facts=facts, hint=hint)
    for kind in types:
        unable = [gpu for gpu in devices if not _computes(gpu, kind, runtime)]
        if unable:
            what = f"the model is quantized to {kind}, in which {called(unable)} cannot compute"
            raise loaded.error(what, *at, hint=_instead(kind, devices, runtime))
    precision = loaded.recipe.precision
    if precision not in types:
        what = f"the model is quantized to {' and '.join(types)} already, and the recipe says precision: {precision}"
        facts = ["an engine computes in the types that the graph states"]
        hint = f"say precision: {types[0]}: the model is then taken as it is; or name the model before quantization"
        stated = ("precision",) if loaded.position("precision") else at
        raise loaded.error(what, *stated, facts=facts, hint=hint)


def _computes(gpu: Gpu, kind: str, runtime: Engines) -> bool:
    return runtime.builds_for(gpu) and kind in gpu.dtypes and kind not in runtime.lacks(gpu)


def _instead(kind: str, devices: Sequence[Gpu], runtime: Engines) -> str:
    """Return a hint with other types for these GPUs, and with the oldest GPUs that compute in this one."""
    others = [each for each in _READ if each != kind and all(_computes(gpu, each, runtime) for gpu in devices)]
    able = sorted((gpu for gpu in gpus.CATALOGUE if _computes(gpu, kind, runtime)), key=lambda gpu: gpu.sm)
    names = ", ".join(gpu.name for gpu in able[:_NAMED])
    to = f"quantize the original to {' or '.join(others)}, or " if others else ""
    return f"{to}build for a GPU that has it, such as {names}"
