"""Runs an ONNX graph in ONNX Runtime with all of its tensors as outputs, for Polygraphy's comparison of layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.runtimes.onnxruntime import providers as ort_providers

if TYPE_CHECKING:
    import numpy as np

    from engine.runtimes.execution import Execution

_CPU = (ort_providers.CPU,)
_BY_NAME = {"cpu": (), "cuda": (ort_providers.CUDA,), "tensorrt": (ort_providers.TENSORRT, ort_providers.CUDA)}
"""The provider of a recipe -> ONNX Runtime's names of it and of those that take what it cannot run."""
_SILENT = 4
"""ONNX Runtime's log level "fatal"."""


def on_device(execution: Execution) -> Callable[[Path, Mapping[str, np.ndarray]], Any]:
    """Return the function that makes Polygraphy's runner on the provider of a recipe."""
    return partial(runner, providers=(*_BY_NAME[execution.options["provider"]], *_CPU))


def runner(model: Path, inputs: Mapping[str, np.ndarray], *, providers: Sequence[str] = _CPU) -> Any:  # noqa: ARG001
    """Return Polygraphy's runner for a model on `providers`, without optimizations, so that each operator rounds."""
    import onnxruntime
    from polygraphy import constants
    from polygraphy.backend.onnx import BytesFromOnnx, ModifyOutputs, OnnxFromPath
    from polygraphy.backend.onnxrt import OnnxrtRunner

    def session() -> onnxruntime.InferenceSession:
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = _SILENT
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        marked = BytesFromOnnx(ModifyOutputs(OnnxFromPath(str(model)), outputs=constants.MARK_ALL))
        return onnxruntime.InferenceSession(marked(), settings, providers=list(providers), enable_fallback=0)

    return OnnxrtRunner(session)
