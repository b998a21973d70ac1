"""Which hardware the built model of a recipe runs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine import gpus, triton_images
from engine.step import Device, Hardware

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

TENSORRT, TENSORRT_RTX, ONNXRUNTIME_GPU = "tensorrt", "tensorrt_rtx", "onnxruntime-gpu"
_TOOLS = {"tensorrt": TENSORRT, "tensorrt-rtx": TENSORRT_RTX, "onnxruntime": ONNXRUNTIME_GPU}


def is_cpu(recipe: Recipe) -> bool:
    """Say whether the recipe's model runs on a CPU: on a machine without a GPU, or by ONNX Runtime's CPU provider."""
    return recipe.target.device == "cpu" or recipe.target.provider == "cpu"


def wanted(recipe: Recipe) -> Hardware | None:
    """Return the GPUs that the recipe's model runs on, with the package that runs it; None for a CPU.

    Raises UsageError for a GPU that the catalogue does not know.
    """
    target = recipe.target
    if is_cpu(recipe):
        return None
    version = triton_images.tensorrt_for(recipe) if target.runtime == "tensorrt" else None
    return on(target.devices, tool=_TOOLS[target.runtime], version=version)


def on(names: Sequence[str], *, tool: str, version: str | None = None) -> Hardware:
    """Return the hardware of these names. Raises UsageError for one that the catalogue does not know."""
    found = [gpus.find(name) for name in names]
    return Hardware(devices=tuple(Device(name=gpu.name, sm=gpu.sm) for gpu in found), tool=tool, version=version)
