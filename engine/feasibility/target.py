"""Which devices the package is for, and which runtime can run on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine import gpus
from engine.errors import UsageError
from engine.gpus import Gpu

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe
    from engine.recipe.schema import Recipe

TENSORRT = ("tensorrt", "tensorrt-rtx")
ON_GPUS = ("cuda", "tensorrt")
"""Providers of ONNX Runtime that run on NVIDIA GPUs."""


def by_tensorrt(recipe: Recipe) -> bool:
    """Tell whether TensorRT compiles the model: as an engine of its own, or behind ONNX Runtime."""
    return recipe.target.runtime in TENSORRT or recipe.target.provider == "tensorrt"


def check(loaded: LoadedRecipe) -> tuple[Gpu, ...]:
    """Return the GPUs that the recipe names; none for a cpu. Raises RecipeError where the target cannot be."""
    recipe = loaded.recipe
    target = recipe.target
    if target.provider is not None and target.runtime != "onnxruntime":
        what = f"`provider` is onnxruntime's; this recipe uses {target.runtime}"
        raise loaded.error(what, "target", "provider", hint="leave it out")
    if target.device == "cpu":
        _on_cpu(loaded)
        return ()
    named = devices(loaded)
    _several(loaded, named)
    _on_gpus(loaded, named)
    return named


def devices(loaded: LoadedRecipe) -> tuple[Gpu, ...]:
    """Return the GPUs that the recipe names, in its order. Raises RecipeError at a name that is none."""
    return tuple(_gpu(loaded, index) for index in range(len(loaded.recipe.target.devices)))


def called(named: Sequence[Gpu]) -> str:
    """Return GPUs in words: `the T4 (SM75) and the A10 (SM86)`."""
    return " and ".join(f"the {gpu.name} (SM{gpu.sm})" for gpu in named)


def place(loaded: LoadedRecipe, index: int) -> tuple[str | int, ...]:
    """Return where a device is said: `target.device`, or one of its items."""
    one = isinstance(loaded.recipe.target.device, str)
    return ("target", "device") if one else ("target", "device", index)


def _gpu(loaded: LoadedRecipe, index: int) -> Gpu:
    name = loaded.recipe.target.devices[index]
    if name.lower() == "cpu":
        what, hint = (
            "a cpu has no place in a list of GPUs",
            "write device: cpu alone; `matrix` varies target.device",
        )
        if isinstance(loaded.recipe.target.device, str):
            what, hint = f"no device is known as {name!r}", "did you mean cpu?"
        raise loaded.error(what, *place(loaded, index), hint=hint)
    try:
        return gpus.find(name)
    except UsageError as error:
        hint = f"{error.hint}; for no GPU, device: cpu"
        raise loaded.error(error.what, *place(loaded, index), facts=error.facts, hint=hint) from None


def _several(loaded: LoadedRecipe, named: Sequence[Gpu]) -> None:
    for index, gpu in enumerate(named):
        if gpu in named[:index]:
            says = loaded.recipe.target.devices
            what = f"the {gpu.name} is named twice: {says[named.index(gpu)]} and {says[index]}"
            raise loaded.error(what, *place(loaded, index), hint="leave one out")
    target = loaded.recipe.target
    if len(named) > 1 and target.runtime != "tensorrt-rtx":
        hint = "use runtime: tensorrt-rtx"
        if not all(gpu.tensorrt_rtx for gpu in named):
            hint = f"make a recipe of each: matrix: {{target.device: [{', '.join(gpu.name for gpu in named)}]}}"
        what = f"{target.runtime} builds for one device; {len(named)} are named"
        facts = ["one engine for several devices is what TensorRT-RTX builds"]
        raise loaded.error(what, "target", "device", facts=facts, hint=hint)


def _on_cpu(loaded: LoadedRecipe) -> None:
    target = loaded.recipe.target
    hint = "name the GPU (`recipe gpus` lists them), or use "
    if target.runtime in TENSORRT:
        what = f"{target.runtime} runs on NVIDIA GPUs; the target is a cpu"
        raise loaded.error(what, "target", "runtime", hint=f"{hint}runtime: onnxruntime")
    if target.provider in ON_GPUS:
        what = f"the provider {target.provider} runs on NVIDIA GPUs; the target is a cpu"
        raise loaded.error(what, "target", "provider", hint=f"{hint}provider: cpu")


def _on_gpus(loaded: LoadedRecipe, named: Sequence[Gpu]) -> None:
    target = loaded.recipe.target
    if target.isa is not None:
        what = f"`isa` is about a cpu's instructions; the target is {called(named)}"
        raise loaded.error(what, "target", "isa", hint="leave it out")
    if target.runtime == "openvino":
        hint = "use tensorrt, or device: cpu"
        raise loaded.error(f"openvino does not run on {called(named)}", "target", "runtime", hint=hint)
    if target.runtime == "onnxruntime" and target.provider not in ON_GPUS:
        what = f"onnxruntime runs on {called(named)} through a provider for GPUs"
        facts = [f"provider: {target.provider}" if target.provider else "the default is provider: cpu"]
        at = "provider" if target.provider else "device"
        hint = "say provider: cuda (or tensorrt), or device: cpu"
        raise loaded.error(what, "target", at, facts=facts, hint=hint)
    without = [gpu for gpu in named if not gpu.tensorrt_rtx] if target.runtime == "tensorrt-rtx" else []
    if without:
        able = sorted({f"SM{gpu.sm}" for gpu in gpus.CATALOGUE if gpu.tensorrt_rtx}, key=lambda name: int(name[2:]))
        what = f"TensorRT-RTX builds nothing for {called(without)}"
        facts = [f"it builds for {', '.join(able)}"]
        hint = "use runtime: tensorrt"
        if len(named) > 1:
            hint = f"leave {' and '.join(gpu.name for gpu in without)} out, or use runtime: tensorrt for each"
        raise loaded.error(what, "target", "runtime", facts=facts, hint=hint)
