"""The stand-in for Triton's openvino backend: a backend in Python that serves models of OpenVINO's IR on a CPU."""

# Triton's own openvino backend is a C++ library that only NVIDIA's containers have. The stand-in compiles the model
# with the options that Triton's own backend takes from the same configuration. Tests with the stand-in therefore cover
# repositories, configurations and ensembles, and not Triton's own backend. Triton loads this very file, so the file
# imports nothing of the package.

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OPTIONS = ("INFERENCE_NUM_THREADS", "NUM_STREAMS", "PERFORMANCE_HINT")
"""The parameters of a model's configuration that Triton's own openvino backend passes to OpenVINO."""


class TritonPythonModel:
    """One of the instances of an OpenVINO model that Triton runs."""

    def initialize(self, args: dict[str, str]) -> None:
        """Compile the model. Triton calls `initialize` once for each instance of the model."""
        import openvino

        config = json.loads(args["model_config"])
        parameters = config.get("parameters", {})
        options = {name: parameters[name]["string_value"] for name in OPTIONS if name in parameters}
        name = config.get("default_model_filename") or "model.xml"
        path = Path(args["model_repository"]) / args["model_version"] / name
        self.request = openvino.Core().compile_model(path, "CPU", options).create_infer_request()

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return a response for each request. Requests run one by one, so that an error fails one request only."""
        import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

        responses = []
        for request in requests:
            try:
                results = self.request.infer({tensor.name(): tensor.as_numpy() for tensor in request.inputs()})
                tensors = [triton.Tensor(name, results[name].copy()) for name in request.requested_output_names()]
            except Exception as error:  # noqa: BLE001 - any error of OpenVINO is the response to the request
                # OpenVINO has one class of errors; a model that was compiled fails on tensors that do not fit it.
                refusal = triton.TritonError(str(error), triton.TritonError.INVALID_ARG)
                responses.append(triton.InferenceResponse(error=refusal))
                continue
            responses.append(triton.InferenceResponse(tensors))
        return responses
