"""What the hardware and the model cannot do, said before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine import gpus
from engine.errors import UsageError
from engine.recipe import supported
from engine.recipe.outline import did_you_mean
from engine.recipe.schema import Profile, Range, Recipe

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe

_RTX_SMS = (75, 80, 86, 89, 120, 121)
"""What TensorRT-RTX builds for: `ComputeCapability` of tensorrt-rtx 1.7."""
_TURING, _AMPERE = 75, 80
_NEAREST = {"fp8": ("int8", "fp16"), "bf16": ("fp16",), "fp32": ("fp16",)}
_TENSORRT = ("tensorrt", "tensorrt-rtx")
_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "int8": 1.0, "fp8": 1.0, "int4": 0.5}
"""Bytes that one parameter takes."""
_GIB = 1 << 30


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for what the target's hardware cannot do, then for what no step can do yet."""
    _on_cpu(loaded) if loaded.recipe.target.device == "cpu" else _on_gpu(loaded)
    _says_nothing_idle(loaded)
    _bench_within_profiles(loaded)
    supported.check(loaded)


def _on_cpu(loaded: LoadedRecipe) -> None:
    target, precision = loaded.recipe.target, loaded.recipe.precision
    if target.runtime in _TENSORRT:
        hint = "name the GPU (`recipe gpus` lists them), or use runtime: onnxruntime"
        raise loaded.error(f"{target.runtime} runs on NVIDIA GPUs; the target is a cpu", "target", "runtime", hint=hint)
    if target.provider in ("cuda", "tensorrt"):
        hint = "name the GPU (`recipe gpus` lists them), or use provider: cpu"
        what = f"the provider {target.provider} runs on NVIDIA GPUs; the target is a cpu"
        raise loaded.error(what, "target", "provider", hint=hint)
    if precision == "fp8":
        raise loaded.error("no cpu computes in fp8", "precision", hint="the nearest that works is int8")


def _on_gpu(loaded: LoadedRecipe) -> None:
    recipe = loaded.recipe
    target = recipe.target
    gpu = _gpu(loaded)
    if target.isa is not None:
        what = f"`isa` is about a cpu's instructions; the target is a {gpu.name}"
        raise loaded.error(what, "target", "isa", hint="leave it out")
    if target.runtime == "openvino":
        hint = "use tensorrt, or device: cpu"
        raise loaded.error(f"openvino does not run on NVIDIA GPUs like the {gpu.name}", "target", "runtime", hint=hint)
    if target.runtime == "tensorrt-rtx" and gpu.sm not in _RTX_SMS:
        what = f"TensorRT-RTX builds nothing for the {gpu.name} (SM{gpu.sm})"
        builds = "it builds for " + ", ".join(f"SM{sm}" for sm in _RTX_SMS)
        raise loaded.error(what, "target", "runtime", facts=[builds], hint="use runtime: tensorrt")
    if recipe.precision not in _precisions(recipe, gpu):
        raise _no_precision(loaded, gpu)
    if recipe.tensorrt.get("compatibility") == "ampere-plus" and gpu.sm < _AMPERE:
        what = f"ampere-plus starts at SM{_AMPERE}; the {gpu.name} is SM{gpu.sm}"
        raise loaded.error(what, "tensorrt", "compatibility", hint="use same-compute-capability")


def _gpu(loaded: LoadedRecipe) -> gpus.Gpu:
    try:
        return gpus.find(loaded.recipe.target.devices[0])
    except UsageError as error:
        hint = f"{error.hint}; for no GPU, device: cpu"
        raise loaded.error(error.what, "target", "device", hint=hint) from None


def _precisions(recipe: Recipe, gpu: gpus.Gpu) -> Sequence[str]:
    """Return what the GPU computes in with the recipe's runtime.

    On SM75 TensorRT-RTX has neither fp32 matrix products nor int8 or int4 weights (its support matrix, "Hardware and
    Precision", and what its builder answers).
    """
    if recipe.target.runtime == "tensorrt-rtx" and gpu.sm == _TURING:
        return ("fp16",)
    return gpu.dtypes


def _no_precision(loaded: LoadedRecipe, gpu: gpus.Gpu) -> Exception:
    recipe = loaded.recipe
    can = _precisions(recipe, gpu)
    nearest = next((dtype for dtype in _NEAREST.get(recipe.precision, ()) if dtype in can), can[-1])
    runtime = f" with {recipe.target.runtime}" if can != gpu.dtypes else ""
    return loaded.error(
        f"the {gpu.name} (SM{gpu.sm}) cannot compute in {recipe.precision}{runtime}",
        "precision",
        facts=[f"it computes in {', '.join(can)}"],
        hint=f"the nearest that works is precision: {nearest}",
    )


def _says_nothing_idle(loaded: LoadedRecipe) -> None:
    """Refuse what would be silently without effect."""
    target = loaded.recipe.target
    if loaded.recipe.tensorrt and target.runtime not in (*_TENSORRT, "auto") and target.provider != "tensorrt":
        what = f"`tensorrt` has options for a runtime that this recipe does not use: it uses {target.runtime}"
        raise loaded.error(what, "tensorrt", hint="leave the section out (`tensorrt: null` over a parent's)")
    if target.provider is not None and target.runtime != "onnxruntime":
        what = f"`provider` is onnxruntime's; this recipe uses {target.runtime}"
        raise loaded.error(what, "target", "provider", hint="leave it out")


def _bench_within_profiles(loaded: LoadedRecipe) -> None:
    """Refuse a shape that a TensorRT engine of these profiles cannot take."""
    recipe = loaded.recipe
    if recipe.target.runtime not in _TENSORRT or not recipe.profiles or recipe.bench is None:
        return
    for index, shape in enumerate(recipe.bench.shapes):
        if not any(_takes(profile, shape.axes) for profile in recipe.profiles):
            said = ", ".join(f"{axis} {size}" for axis, size in shape.axes.items())
            hint = "widen a profile, or measure a shape inside one"
            raise loaded.error(f"no profile takes {said}", "bench", "shapes", index, hint=hint)


def _takes(profile: Mapping[str, Range], axes: Mapping[str, int]) -> bool:
    return all(axis not in profile or profile[axis].min <= size <= profile[axis].max for axis, size in axes.items())


def check_model(loaded: LoadedRecipe, facts: Mapping[str, Any]) -> None:
    """Raise RecipeError for what the model, by the report of its fetch, cannot do.

    `facts` has "kind", "parameters", "bytes", "max_sequence" (tokens or None), "axes" ({input: [size or axis name]}).
    """
    _fits_in_memory(loaded, facts)
    dynamic = _dynamic_axes(facts)
    if dynamic is None:
        return
    recipe = loaded.recipe
    if dynamic and not profiles(recipe, facts):
        what = "the model has axes of any size, and no profile says which sizes are meant"
        raise loaded.error(what, "profiles", facts=_about(dynamic), hint=f"add {_proposal(dynamic, facts)}")
    for index, profile in enumerate(recipe.profiles):
        _check_axes(loaded, ("profiles", index), {axis: sizes.max for axis, sizes in profile.items()}, facts, dynamic)
    for index, shape in enumerate(recipe.bench.shapes if recipe.bench else ()):
        _check_axes(loaded, ("bench", "shapes", index), shape.axes, facts, dynamic)


def profiles(recipe: Recipe | LoadedRecipe, facts: Mapping[str, Any]) -> tuple[Profile, ...]:
    """Return the profiles of a recipe; where it has none, one that suits a text or image model.

    The default takes 1 to 8 inputs at once, of 1 token up to 512 or as many as the model has positions for. There is
    none for an ONNX file, whose axes may be anything.
    """
    said = recipe.profiles if isinstance(recipe, Recipe) else recipe.recipe.profiles
    dynamic = _dynamic_axes(facts) or ()
    if said or facts.get("kind") == "onnx" or not dynamic or not set(dynamic) <= {"batch", "sequence"}:
        return said
    longest = min(512, facts.get("max_sequence") or 512)
    ranges = {
        "batch": Range(min=1, opt=1, max=8),
        "sequence": Range(min=1, opt=min(128, longest), max=longest),
    }
    return ({axis: ranges[axis] for axis in dynamic},)


def _fits_in_memory(loaded: LoadedRecipe, facts: Mapping[str, Any]) -> None:
    recipe = loaded.recipe
    if recipe.target.device == "cpu":
        return
    gpu = _gpu(loaded)
    parameters = facts.get("parameters")
    needed = parameters * _BYTES[recipe.precision] if parameters else facts.get("bytes") or 0
    if needed > gpu.memory_gib * _GIB:
        has = f"the {gpu.name} has {gpu.memory_gib} GiB"
        larger = [other.name for other in gpus.CATALOGUE if other.memory_gib * _GIB > needed]
        hint = f"take a larger GPU ({', '.join(larger[:3])})" if larger else "no GPU known here is large enough"
        what = f"the model's weights take {needed / _GIB:.1f} GiB in {recipe.precision}: more than the GPU's memory"
        raise loaded.error(what, "target", "device", facts=[has], hint=hint)


def _check_axes(
    loaded: LoadedRecipe,
    path: tuple[str | int, ...],
    sizes: Mapping[str, int],
    facts: Mapping[str, Any],
    dynamic: Sequence[str],
) -> None:
    """Hold the sizes of a profile (its largest) or of a bench shape against the model's axes."""
    for axis, size in sizes.items():
        if axis not in dynamic:
            hint = did_you_mean(axis, dynamic) if dynamic else "leave it out"
            raise loaded.error(f"the model has no axis `{axis}`", *path, axis, facts=_about(dynamic), hint=hint)
        longest = facts.get("max_sequence")
        if axis == "sequence" and longest is not None and size > longest:
            what = f"{size} tokens are more than the model has positions for: {longest}"
            raise loaded.error(what, *path, axis, hint=f"at most {longest} is possible")
    missing = [axis for axis in dynamic if axis not in sizes]
    if missing:
        what = f"the model's axis `{missing[0]}` may have any size, and nothing here says which"
        hint = f"as in {_proposal(dynamic, facts)}" if path[0] == "profiles" else f"add {missing[0]}: 1"
        raise loaded.error(what, *path, facts=_about(dynamic), hint=hint)


def _dynamic_axes(facts: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the names of the axes that may have any size; None where the report says nothing of axes."""
    axes = facts.get("axes")
    if not axes:
        return None
    return tuple(dict.fromkeys(axis for shape in axes.values() for axis in shape if isinstance(axis, str)))


def _about(dynamic: Sequence[str]) -> list[str]:
    return [f"its axes of any size: {', '.join(dynamic)}" if dynamic else "all of its axes have a fixed size"]


def _proposal(dynamic: Sequence[str], facts: Mapping[str, Any]) -> str:
    """Return a profile for these axes as one would write it; what cannot be guessed is left in capitals."""
    longest = min(512, facts.get("max_sequence") or 512)
    guesses = {"batch": "[1, 1, 8]", "seq": f"[1, {min(128, longest)}, {longest}]"}
    said = (
        next((guess for part, guess in guesses.items() if part in axis.lower()), "[MIN, OPT, MAX]") for axis in dynamic
    )
    pairs = (f"{axis}: {sizes}" for axis, sizes in zip(dynamic, said, strict=True))
    return "profiles: [{" + ", ".join(pairs) + "}]"
