"""A session of ONNX Runtime inside a Python model of Triton: packages carry this file as session.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class ModelSession:
    """The model of a package on the CPU, with the options that Triton's own backend would give it.

    Settings: `file`, the name of the model's file; `level`, a name of ONNX Runtime's GraphOptimizationLevel; and
    `threads`, the threads of an operator, where 0 lets ONNX Runtime choose.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, settings["level"])
        options.intra_op_num_threads = settings["threads"]
        path = str(folder / settings["file"])
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def __call__(self, given: dict[str, Any], outputs: list[str]) -> dict[str, Any]:
        """Return the named outputs of the model; others are not computed."""
        return dict(zip(outputs, self._session.run(outputs, given), strict=True))
