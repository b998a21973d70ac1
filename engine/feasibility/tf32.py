"""TF32: refuses the field `tf32` where it has no effect, or where the runtime cannot be told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.gpus import AMPERE, called
from engine.runtimes import registry

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.recipe.load import LoadedRecipe

_LEAVE_OUT = "leave it out (`tf32: null` over a parent's)"


def check(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
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
