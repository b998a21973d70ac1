"""Checks of a recipe whose model is quantized already, for example by NVIDIA Model Optimizer."""

# A strongly typed network computes in the types of the graph, whatever the recipe says.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine import gpus
from engine.gpus import called

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import LoadedRecipeView
    from engine.runtimes.tensorrt.spec import Engines

_READ = ("int8", "fp8", "int4")
"""The quantized types that TensorRT 10.0 and later read, and that recipes have a precision for.

int4 came with TensorRT 10.0, fp8 with 9.0 (docs/Changelog.md of onnx-tensorrt). fp4 (TensorRT 10.8) is no precision of
recipes.
"""
_NAMED = 4
"""The number of GPUs that a hint names."""


def refuse(loaded: LoadedRecipeView, types: Sequence[str], devices: Sequence[Gpu], runtime: Engines) -> None:
    """Raise RecipeError where TensorRT would not read the model's Q/DQ, or would compute in another precision.

    `types` are the types to which the model is quantized.
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
