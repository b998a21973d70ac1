"""Triton's backends, as its configurations call them: not the runtimes of recipes, though some share a name."""

from __future__ import annotations

from enum import Enum, StrEnum


class Backend(Enum):
    """What serves a model of a package: `backend`, `platform` and `default_model_filename` of its ModelConfig."""

    ONNXRUNTIME = ("onnxruntime", "onnxruntime_onnx", "model.onnx")
    TENSORRT = ("tensorrt", "tensorrt_plan", "model.plan")
    PYTHON = ("python", "", "model.py")
    ENSEMBLE = ("", "ensemble", "")

    def __init__(self, backend: str, platform: str, file: str) -> None:
        self.backend, self.platform, self.file = backend, platform, file

    @classmethod
    def of_platform(cls, platform: str) -> Backend:
        """Return the backend of a platform; python models have none."""
        return next((each for each in cls if each.platform == platform), cls.PYTHON)


class Accelerator(StrEnum):
    """What Triton's ONNX Runtime backend hands a graph to. Source: README of its repository."""

    TENSORRT = "tensorrt"
    CUDA = "cuda"
    OPENVINO = "openvino"


ON_CPU = (Accelerator.OPENVINO,)
ON_GPU = (Accelerator.TENSORRT, Accelerator.CUDA)
