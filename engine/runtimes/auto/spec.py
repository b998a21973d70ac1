"""Auto: a name in recipes for the runtime that fits the target. No code chooses a runtime for `auto` yet."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import ClassVar

from engine.runtimes.runtime import Kernels, Runtime, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import LoadedRecipeView, TargetView


class Auto(Runtime):
    """The runtime `auto`: checks accept it, and builds are refused as not supported yet."""

    name: ClassVar[str] = "auto"
    on_gpus: ClassVar[bool] = True
    planned: ClassVar[Unsupported | None] = Unsupported(
        "target.runtime", "choosing a runtime", "onnxruntime or tensorrt"
    )

    def builds_for(self, gpu: Gpu) -> bool:
        """Return True, because for every GPU of the catalogue some runtime builds models."""
        return True

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return ONNX Runtime's precisions on a CPU, as no step builds for another runtime on CPUs; None on a GPU."""
        return Kernels(("fp32", "int8"), "onnxruntime computes there in") if target.device == "cpu" else None

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return the names of the sections that any runtime reads, as `auto` may stand for any runtime."""
        return ("tensorrt",)

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError at an option under `tensorrt` that TensorRT does not have."""
        import_module("engine.runtimes.tensorrt.feasible").options(loaded, devices)
