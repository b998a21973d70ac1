"""What a recipe may say already and no step does yet: refused by name, never ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.recipe.schema import Recipe

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe

_LATER_TASKS = ("text2text-generation", "text-generation", "image-classification")
_OPTIONS = ("version", "memory_pool", "optimization_level", "compatibility")
_LATER_MODES = ("ampere-plus", "version-compatible")


def _rivals(recipe: Recipe) -> list[str]:
    return [rival.precision for rival in (recipe.bench.against if recipe.bench else ())]


def _ways(recipe: Recipe) -> tuple[str, ...]:
    return recipe.bench.via if recipe.bench else ()


Row = tuple[str, Callable[[Recipe], object], str, str]
# The field, when it is refused, what is not supported, what works instead. A step that learns one takes its line out.
_ROWS: tuple[Row, ...] = (
    ("target.runtime", lambda r: r.target.runtime == "auto", "choosing a runtime", "onnxruntime or tensorrt"),
    ("target.runtime", lambda r: r.target.runtime == "openvino", "openvino", "onnxruntime"),
    ("target.runtime", lambda r: r.target.runtime == "tensorrt-rtx", "tensorrt-rtx", "tensorrt"),
    ("target.provider", lambda r: r.target.provider in ("cuda", "tensorrt"), "this provider", "provider: cpu"),
    ("target.device", lambda r: r.target.runtime == "onnxruntime" and r.target.device != "cpu",
     "onnxruntime on a GPU", "device: cpu, or runtime: tensorrt"),
    ("precision", lambda r: r.precision in ("bf16", "fp8", "int4"), "this precision", "fp32, fp16 or int8"),
    ("precision", lambda r: r.precision == "fp16" and r.target.runtime != "tensorrt",
     "fp16 on this runtime", "runtime: tensorrt, or precision: fp32"),
    ("precision", lambda r: r.precision == "int8" and r.target.runtime != "onnxruntime",
     "int8 on this runtime", "runtime: onnxruntime on a cpu, or precision: fp16"),
    ("model.task", lambda r: r.model.task in _LATER_TASKS, "this task", "tasks of one pass over text"),
    ("model.trust_remote_code", lambda r: r.model.trust_remote_code, "running a model's own code",
     "a model of an architecture that transformers has"),
    ("graphs", lambda r: r.graphs, "several graphs", "a model of one graph"),
    ("generate", lambda r: r.generate, "generating text", "tasks of one pass over text"),
    ("preprocess", lambda r: r.preprocess, "preparing images", ".npz tensors as samples"),
    ("calibrate", lambda r: r.calibrate, "calibration", "int8 without it: its scales are found while it runs"),
    ("bench.via", lambda r: set(_ways(r)) - {"in-process"}, "measuring through a server", "via: [in-process]"),
    ("bench.against", lambda r: set(_rivals(r)) - {"fp32"}, "a rival in another precision than fp32",
     "precision: fp32"),
    ("package.triton.image", lambda r: r.package.triton.image, "choosing Triton's image",
     "the image whose TensorRT is the one that built the engine"),
    ("tensorrt.compatibility", lambda r: r.tensorrt.get("compatibility") in _LATER_MODES, "this compatibility",
     "none or same-compute-capability"),
)  # fmt: skip


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError at the first field whose step is not there yet."""
    recipe = loaded.recipe
    for path, refuses, what, instead in _ROWS:
        if refuses(recipe):
            raise loaded.error(f"not supported yet: {what} (`{path}`)", *path.split("."), hint=f"use {instead}")
    for option in recipe.tensorrt:
        if option not in _OPTIONS:
            hint = "supported: " + ", ".join(_OPTIONS)
            raise loaded.error(f"not supported yet: `tensorrt.{option}`", "tensorrt", option, hint=hint)
