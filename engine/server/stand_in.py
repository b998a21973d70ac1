"""A stand-in for Triton's onnxruntime backend: a python-based backend that answers for onnxruntime_onnx on a CPU."""

# The real backend is a C++ library that comes with NVIDIA's container alone. This one opens the model as that would by
# the same configuration: it shows what the repository, the configuration and the ensemble do, not the backend itself.
# Triton loads this very file; it knows nothing of the package around it.

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LEVELS = {-1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
"""`optimization.graph.level`, as the real backend reads it; 0 is all of it."""
THREADS = "intra_op_thread_count"
"""The real backend's parameter. Where it is not set that one takes every CPU, this one takes one for each instance."""


class TritonPythonModel:
    """One instance of an ONNX model."""

    def initialize(self, args: dict[str, str]) -> None:
        """Open the model; Triton calls this once for each instance."""
        import onnxruntime

        config = json.loads(args["model_config"])
        level = int(config.get("optimization", {}).get("graph", {}).get("level", 0))
        threads = int(config.get("parameters", {}).get(THREADS, {}).get("string_value", 1))
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(
            onnxruntime.GraphOptimizationLevel, LEVELS.get(level, "ORT_ENABLE_ALL")
        )
        options.intra_op_num_threads = threads
        name = config.get("default_model_filename") or "model.onnx"
        path = Path(args["model_repository"]) / args["model_version"] / name
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.texts = {each["name"] for each in config["input"] if each["data_type"] == "TYPE_STRING"}

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer each request by itself: what is wrong with one is no fault of the others."""
        import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

        answers = []
        for request in requests:
            names = list(request.requested_output_names())
            try:
                made = self.session.run(names, {tensor.name(): self.value(tensor) for tensor in request.inputs()})
            except Exception as error:  # noqa: BLE001 - whatever ONNX Runtime says of a request is its answer
                answers.append(triton.InferenceResponse(error=triton.TritonError(str(error))))
                continue
            tensors = [triton.Tensor(name, array) for name, array in zip(names, made, strict=True)]
            answers.append(triton.InferenceResponse(tensors))
        return answers

    def value(self, tensor: Any) -> Any:
        """Return an input as ONNX Runtime takes it: texts are bytes to Triton."""
        import numpy as np

        array = tensor.as_numpy()
        if tensor.name() not in self.texts:
            return array
        texts = [text.decode("utf-8") for text in array.reshape(-1)]
        return np.array(texts, dtype=object).reshape(array.shape)
