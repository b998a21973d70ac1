"""Precision: refuses a precision or `tf32` that the device or its runtime lacks, and calibration without use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine import tasks
from engine.gpus import AMPERE, called
from engine.runtimes import registry
from engine.runtimes.preparation import Lowering

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.recipe.load import LoadedRecipe
    from engine.recipe.schema import Recipe

_NEAREST: Mapping[str, Sequence[str]] = {
    "fp32": ("fp16",),
    "fp16": ("fp32",),
    "bf16": ("fp16", "fp32"),
    "int8": ("fp16", "fp32"),
    "fp8": ("int8", "fp16"),
    "int4": ("int8", "fp16"),
}
"""For each precision the precisions that a hint proposes instead, the nearest first."""
_LEAVE_OUT = "leave it out (`tf32: null` over a parent's)"


def check(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError for a precision that the target does not compute in; `devices` are the GPUs, none for a cpu."""
    recipe, requested = loaded.recipe, loaded.recipe.precision
    runtime = registry.of(recipe)
    kernels = runtime.kernels(recipe.target)
    if kernels is not None:
        by = f"the provider {recipe.target.provider} does not compute" if devices else "no cpu is built for"
        helps = bool(kernels.instead) and requested not in kernels.not_for
        more = f", or {kernels.instead}" if helps and requested in runtime.precisions_on(devices) else ""
        _refuse(loaded, kernels.precisions, f"{by} in {requested}", kernels.fact, more=more)
    else:
        for gpu in devices:
            lacking = f" with {runtime.name}" if requested in gpu.dtypes else ""
            what = f"{called([gpu])} cannot compute in {requested}{lacking}"
            able = runtime.precisions_on([gpu])
            _refuse(loaded, able, what, "it computes in", nearest=runtime.precisions_on(devices))
    _calibration(loaded, devices)
    _weights_only(loaded)
    _keep_in(loaded)


def _keep_in(loaded: LoadedRecipe) -> None:
    """Raise RecipeError where layers cannot be kept in a precision that `quantize.keep_in` names."""
    recipe = loaded.recipe
    able = registry.of(recipe).keeps_in(recipe)
    for precision in recipe.quantize.get("keep_in", {}):
        if precision not in able and recipe.precision != "fp32":  # fp32 may be one row of a matrix
            what = f"a build in {recipe.precision} with {recipe.target.runtime} keeps no layer in {precision}"
            hint = "name the layers under `fp32`" if able else "leave `keep_in` out"
            raise loaded.error(what, "quantize", "keep_in", precision, hint=hint, at_key=True)


def _weights_only(loaded: LoadedRecipe) -> None:
    """Raise RecipeError where `quantize.weights_only` is not how the target lowers the precision of weights."""
    recipe = loaded.recipe
    chosen = recipe.quantize.get("weights_only")
    by_weights = registry.of(recipe).weights_only(recipe)
    if chosen is None or recipe.precision == "fp32" or chosen == by_weights:  # fp32 may be one row of a matrix
        return
    if chosen:
        what = "weights alone are quantized only for a cpu with onnxruntime or openvino"
        hint = "leave `weights_only` out"
    else:
        what, hint = f"{recipe.precision} on a cpu is for weights alone", "leave `weights_only` out, or use int8"
    raise loaded.error(what, "quantize", "weights_only", hint=hint)


def _refuse(
    loaded: LoadedRecipe, able: Sequence[str], what: str, fact: str, *, nearest: Sequence[str] = (), more: str = ""
) -> None:
    """Raise RecipeError for a precision not in `able`; the hint proposes some of `nearest`, and ends with `more`."""
    requested = loaded.recipe.precision
    if requested in able:
        return
    nearest_precision = next((dtype for dtype in _NEAREST[requested] if dtype in (nearest or able)), able[-1])
    hint = f"the nearest that works is precision: {nearest_precision}{more}"
    at = ("precision",) if loaded.position("precision") else ("target", "runtime")
    raise loaded.error(what, *at, facts=[f"{fact} {', '.join(able)}"], hint=hint)


def _calibration(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
    recipe = loaded.recipe
    if recipe.calibrate is None:
        return
    if recipe.calibrate.samples == recipe.validation.samples:
        what = "the model would be validated on the samples that it is calibrated on"
        hint = "name other samples: what was seen proves nothing"
        raise loaded.error(what, "calibrate", "samples", hint=hint)
    reason = "" if devices else _without_samples(recipe)
    if reason:
        what = f"nothing is calibrated for a cpu: {reason}"
        raise loaded.error(what, "calibrate", hint="leave it out (`calibrate: null` over a parent's)")


def _without_samples(recipe: Recipe) -> str:
    """Return why the recipe's precision needs no samples on a CPU; an empty text where it needs some."""
    runtime = registry.of(recipe)
    lowering = runtime.lowering(recipe)
    if runtime.weights_only(recipe):
        return "scales of weights need no samples"
    task = tasks.known(recipe.model.task)
    if lowering is Lowering.DYNAMIC and task is not None and task.takes_only_texts:
        return "scales of weights need no samples, and those of a text's activations change with the text"
    return ""


def check_tf32(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError for a `tf32` that changes nothing or cannot be had; `devices` are the GPUs, none for a cpu."""
    recipe, runtime = loaded.recipe, registry.of(loaded.recipe)
    if recipe.tf32 is None:
        return
    if recipe.precision != "fp32":
        what = f"tf32 has no effect on a model in {recipe.precision}"
        fact = "TF32 takes the place of fp32 inside products: the tensors stay in fp32"
        raise loaded.error(what, "tf32", facts=[fact], hint=f"{_LEAVE_OUT}, or say precision: fp32")
    if not devices or runtime.runs_on_cpu(recipe.target):
        what = "tf32 has no effect on a cpu"
        raise loaded.error(what, "tf32", facts=["TF32 is a format of NVIDIA's tensor cores"], hint=_LEAVE_OUT)
    if runtime.tf32_of(recipe) is None:
        return  # one recipe may keep fp32 on every GPU of its `matrix`, also on those without TF32
    without = [gpu for gpu in devices if "tf32" not in gpu.dtypes]
    if without and recipe.tf32:
        what = f"{called(without)} has no TF32"
        raise loaded.error(what, "tf32", facts=[f"TF32 came with Ampere (SM{AMPERE})"], hint=_LEAVE_OUT)
    choices = runtime.tf32_choices(recipe.target)
    if recipe.tf32 in choices:
        return
    by = f"{runtime.name} with the provider {recipe.target.provider}" if recipe.target.provider else runtime.name
    if not choices:
        raise loaded.error(f"{by} has no switch for TF32", "tf32", hint=f"{_LEAVE_OUT}, or use runtime: tensorrt")
    what = f"{by} has no option that turns TF32 off"
    hint = "use provider: cuda or runtime: tensorrt, or leave it out"
    raise loaded.error(what, "tf32", facts=["it keeps TensorRT's default, which is TF32"], hint=hint)
