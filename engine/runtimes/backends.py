"""Names of Triton's backends and accelerators in configurations. Some runtimes have the same name as a backend."""

from __future__ import annotations

from enum import Enum, StrEnum


class Backend(Enum):
    """A backend of Triton: `backend`, `platform` and `default_model_filename` of a ModelConfig."""

    ONNXRUNTIME = ("onnxruntime", "onnxruntime_onnx", "model.onnx")
    TENSORRT = ("tensorrt", "tensorrt_plan", "model.plan")
    OPENVINO = ("openvino", "", "model.xml")
    PYTORCH = ("pytorch", "torch_aoti", "model.pt2")
    PYTHON = ("python", "", "model.py")
    ENSEMBLE = ("", "ensemble", "")

    def __init__(self, backend: str, platform: str, file: str) -> None:
        self.backend, self.platform, self.file = backend, platform, file

    @classmethod
    def of(cls, *, platform: str, backend: str) -> Backend:
        """Return the backend of a ModelConfig, which states its `platform` or, without a platform, its `backend`.

        PYTHON is returned where both are unknown.
        """
        matching = (each for each in cls if (each.platform == platform if platform else each.backend == backend))
        return next(matching, cls.PYTHON)


BY_POSITION = (Backend.PYTORCH,)
"""Backends that know the tensors of a model by their positions alone: `INPUT__0`, `OUTPUT__0` and so on.

Source: README of triton-inference-server/pytorch_backend, "Ordinal Base I/O Names", at the commit 266fd38.
"""
WITHOUT_NUMBERS = (Backend.TENSORRT, Backend.OPENVINO, Backend.PYTORCH)
"""Backends that serve no tensor without axes, unless Triton joins requests: Triton has no such tensor.

ONNX Runtime's backend takes it as a tensor of the shape [1] (`ModelInstanceState::ValidateInputs`). The others compare
the shapes (`CompareDimsSupported` of both, and `CompareShapeDimsSupported` of the TensorRT backend). Sources: the
repositories of Triton's backends, at the commits 00fd3e8 (ONNX Runtime), e2ef6d7 (TensorRT) and db19304 (OpenVINO).
The PyTorch backend gives the model the shape of the request (`SetInputTensors` at the commit 266fd38).
"""


class Accelerator(StrEnum):
    """An accelerator of Triton's ONNX Runtime backend, which runs the graph.

    Source: README of triton-inference-server/onnxruntime_backend.
    """

    TENSORRT = "tensorrt"
    CUDA = "cuda"
    OPENVINO = "openvino"


ON_CPU = (Accelerator.OPENVINO,)
ON_GPU = (Accelerator.TENSORRT, Accelerator.CUDA)
