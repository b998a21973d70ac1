"""Names of Triton's backends and accelerators in configurations. Some runtimes have the same name as a backend."""

from __future__ import annotations

from enum import Enum, StrEnum


class Backend(Enum):
    """A backend of Triton: `backend`, `platform` and `default_model_filename` of a ModelConfig."""

    ONNXRUNTIME = ("onnxruntime", "onnxruntime_onnx", "model.onnx")
    TENSORRT = ("tensorrt", "tensorrt_plan", "model.plan")
    PYTHON = ("python", "", "model.py")
    ENSEMBLE = ("", "ensemble", "")

    def __init__(self, backend: str, platform: str, file: str) -> None:
        self.backend, self.platform, self.file = backend, platform, file

    @classmethod
    def of_platform(cls, platform: str) -> Backend:
        """Return the backend with the given `platform`; PYTHON for an unknown platform, as Python models have none."""
        return next((each for each in cls if each.platform == platform), cls.PYTHON)


class Accelerator(StrEnum):
    """An accelerator of Triton's ONNX Runtime backend, which runs the graph.

    Source: README of triton-inference-server/onnxruntime_backend.
    """

    TENSORRT = "tensorrt"
    CUDA = "cuda"
    OPENVINO = "openvino"


ON_CPU = (Accelerator.OPENVINO,)
ON_GPU = (Accelerator.TENSORRT, Accelerator.CUDA)
