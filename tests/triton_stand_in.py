"""A stand-in for Triton's onnxruntime backend, for tests: a python-based backend that answers for onnxruntime_onnx.

The real backend is a C++ library that comes with NVIDIA's container only. This one opens the model as the real one
would by the same configuration; it proves the repository, the configuration and the ensemble, not the backend.
"""

import json
from pathlib import Path

import onnxruntime
import triton_python_backend_utils as triton

LEVELS = {-1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        level = int(config.get("optimization", {}).get("graph", {}).get("level", 0))
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(
            onnxruntime.GraphOptimizationLevel, LEVELS.get(level, "ORT_ENABLE_ALL")
        )
        options.intra_op_num_threads = 1
        path = Path(args["model_repository"]) / args["model_version"] / "model.onnx"
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.names = [output["name"] for output in config["output"]]

    def execute(self, requests):
        answers = []
        for request in requests:
            feed = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
            made = self.session.run(self.names, feed)
            tensors = [triton.Tensor(name, array) for name, array in zip(self.names, made, strict=True)]
            answers.append(triton.InferenceResponse(tensors))
        return answers
