"""OpenVINO: a runtime for CPUs that nothing builds for yet."""

from __future__ import annotations

from typing import ClassVar

from engine.runtimes.runtime import Kernels, Runtime, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.runtimes.recipes import TargetView


class OpenVino(Runtime):
    """OpenVINO, said and not built for yet."""

    name: ClassVar[str] = "openvino"
    title: ClassVar[str] = "OpenVINO"
    planned: ClassVar[Unsupported | None] = Unsupported("target.runtime", "openvino", "onnxruntime")

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return what CPUs are built for today."""
        return Kernels(("fp32", "int8"), "onnxruntime computes there in")
