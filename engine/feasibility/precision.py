"""Which precisions the devices and their runtime compute in, and what calibration is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.gpus import called
from engine.runtimes import registry

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.recipe.load import LoadedRecipe
    from engine.runtimes.runtime import Runtime

_PRECISIONS = ("fp32", "fp16", "bf16", "int8", "fp8", "int4")
_NEAREST: Mapping[str, Sequence[str]] = {
    "fp32": ("fp16",),
    "fp16": ("fp32",),
    "bf16": ("fp16", "fp32"),
    "int8": ("fp16", "fp32"),
    "fp8": ("int8", "fp16"),
    "int4": ("int8", "fp16"),
}


def check(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError for a precision that the target does not compute in; `devices` are its GPUs, none for a cpu."""
    recipe, asked = loaded.recipe, loaded.recipe.precision
    runtime = registry.of(recipe)
    kernels = runtime.kernels(recipe.target)
    if kernels is not None:
        by = f"the provider {recipe.target.provider} does not compute" if devices else "no cpu is built for"
        better = bool(kernels.instead) and asked in _able(loaded, devices)
        more = f", or {kernels.instead}" if better else ""
        _hold(loaded, kernels.precisions, f"{by} in {asked}", kernels.fact, more=more)
    else:
        for gpu in devices:
            lacking = f" with {runtime.name}" if asked in gpu.dtypes else ""
            what = f"{called([gpu])} cannot compute in {asked}{lacking}"
            _hold(loaded, _of(gpu, runtime), what, "it computes in", nearest=_able(loaded, devices))
    _calibration(loaded, devices)


def _hold(
    loaded: LoadedRecipe, able: Sequence[str], what: str, fact: str, *, nearest: Sequence[str] = (), more: str = ""
) -> None:
    """Raise RecipeError where the recipe's precision is not among those of `able`."""
    asked = loaded.recipe.precision
    if asked in able:
        return
    choice = next((dtype for dtype in _NEAREST[asked] if dtype in (nearest or able)), able[-1])
    hint = f"the nearest that works is precision: {choice}{more}"
    at = ("precision",) if loaded.position("precision") else ("target", "runtime")
    raise loaded.error(what, *at, facts=[f"{fact} {', '.join(able)}"], hint=hint)


def _able(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> Sequence[str]:
    """Return what all of the GPUs compute in."""
    runtime = registry.of(loaded.recipe)
    return [dtype for dtype in _PRECISIONS if all(dtype in _of(gpu, runtime) for gpu in devices)]


def _of(gpu: Gpu, runtime: Runtime) -> Sequence[str]:
    """Return what a GPU computes in with a runtime."""
    lacks = runtime.lacks(gpu)
    return [dtype for dtype in _PRECISIONS if dtype in gpu.dtypes and dtype not in lacks]


def _calibration(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
    recipe = loaded.recipe
    if recipe.calibrate is None:
        return
    if recipe.calibrate.samples == recipe.validation.samples:
        what = "the model would be validated on the samples that it is calibrated on"
        hint = "name other samples: what was seen proves nothing"
        raise loaded.error(what, "calibrate", "samples", hint=hint)
    if not devices and recipe.precision != "fp32":  # of a matrix of precisions one may need none
        what = "nothing is calibrated for a cpu: int8 finds its scales there while it runs"
        raise loaded.error(what, "calibrate", hint="leave it out (`calibrate: null` over a parent's)")
