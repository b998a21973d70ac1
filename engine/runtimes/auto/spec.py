"""Auto: a runtime chosen for the target, which nothing does yet."""

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
    """Whatever suits the target."""

    name: ClassVar[str] = "auto"
    on_gpus: ClassVar[bool] = True
    planned: ClassVar[Unsupported | None] = Unsupported(
        "target.runtime", "choosing a runtime", "onnxruntime or tensorrt"
    )

    def builds_for(self, gpu: Gpu) -> bool:
        """Whatever suits the GPU would."""
        return True

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return what CPUs are built for today; None on a GPU."""
        return Kernels(("fp32", "int8"), "onnxruntime computes there in") if target.device == "cpu" else None

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return every section: any may turn out to be meant."""
        return ("tensorrt",)

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError at an option that TensorRT does not have."""
        import_module("engine.runtimes.tensorrt.feasible").options(loaded, devices)
