"""OpenVINO: a runtime for CPUs. Recipes may name `openvino`, but no step builds for OpenVINO yet."""

from __future__ import annotations

from typing import ClassVar

from engine.runtimes.runtime import Kernels, Runtime, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.runtimes.recipes import TargetView


class OpenVino(Runtime):
    """The runtime `openvino`: checks accept it, and builds are refused as not supported yet."""

    name: ClassVar[str] = "openvino"
    title: ClassVar[str] = "OpenVINO"
    planned: ClassVar[Unsupported | None] = Unsupported("target.runtime", "openvino", "onnxruntime")

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return the precisions of ONNX Runtime on a CPU, as no step builds for another runtime on CPUs."""
        return Kernels(("fp32", "int8"), "onnxruntime computes there in")
