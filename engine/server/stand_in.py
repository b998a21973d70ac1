"""The stand-in for Triton's onnxruntime backend: a backend in Python that serves onnxruntime_onnx models on a CPU."""

# Triton's own onnxruntime backend is a C++ library that only NVIDIA's containers have. The stand-in opens the model
# with the options that Triton's own backend takes from the same configuration. Tests with the stand-in therefore cover
# repositories, configurations and ensembles, and not Triton's own backend. Triton loads this very file, so the file
# imports nothing of the package.

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

LEVELS = {-1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
"""`optimization.graph.level` -> ONNX Runtime's optimization level, as in Triton's own backend; 0 is ORT_ENABLE_ALL."""
THREADS = "intra_op_thread_count"
"""The name of the parameter that sets the number of threads in Triton's own onnxruntime backend.

Without the parameter `intra_op_thread_count`, Triton's own backend uses every CPU, and the stand-in uses one thread.
"""


class TritonPythonModel:
    """One of the instances of an ONNX model that Triton runs."""

    def initialize(self, args: dict[str, str]) -> None:
        """Open the model. Triton calls `initialize` once for each instance of the model."""
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
        self.joins = int(config.get("max_batch_size", 0)) > 0

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return a response for each request. Requests that Triton joined run as one batch, as in Triton's own backend.

        If the batch fails, its requests run one by one, so that the error fails one request only. Triton's own backend
        fails all requests of the batch.
        """
        given = [{tensor.name(): self.value(tensor) for tensor in request.inputs()} for request in requests]
        names = [list(request.requested_output_names()) for request in requests]
        if len(requests) > 1 and self.joins:
            with contextlib.suppress(Exception):  # below, the request that causes the error gets it
                return self._joined(given, names)
        return [self._alone(tensors, listed) for tensors, listed in zip(given, names, strict=True)]

    def _joined(self, given: list[dict[str, Any]], names: list[list[str]]) -> list[Any]:
        """Return the responses to requests that run as one batch: each response has the request's own rows."""
        import numpy as np

        rows = [len(next(iter(tensors.values()))) for tensors in given]
        every = sorted({name for listed in names for name in listed})
        joined = {name: np.concatenate([tensors[name] for tensors in given]) for name in given[0]}
        outputs = {}
        for name, output in zip(every, self.session.run(every, joined), strict=True):
            if len(output) != sum(rows):
                raise ValueError(f"{name} has {len(output)} rows for a batch of {sum(rows)}")
            outputs[name] = np.split(output, np.cumsum(rows)[:-1])
        return [_response({name: outputs[name][index] for name in listed}) for index, listed in enumerate(names)]

    def _alone(self, tensors: dict[str, Any], names: list[str]) -> Any:
        """Return the response to one request.

        A node that fails on the tensors of a request is a mistake of the client (INVALID_ARG): an id beyond the
        vocabulary, shapes that do not fit. Any other error of ONNX Runtime is none (INTERNAL).
        """
        from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

        try:
            return _response(dict(zip(names, self.session.run(names, tensors), strict=True)))
        except Exception as error:  # noqa: BLE001 - any error of ONNX Runtime is the response to the request
            return _refusal(str(error), of_client=isinstance(error, (Fail, InvalidArgument, ValueError)))

    def value(self, tensor: Any) -> Any:
        """Return an input as ONNX Runtime takes it: Triton passes texts as bytes, ONNX Runtime takes str."""
        import numpy as np

        array = tensor.as_numpy()
        if tensor.name() not in self.texts:
            return array
        texts = [text.decode("utf-8") for text in array.reshape(-1)]
        return np.array(texts, dtype=object).reshape(array.shape)


def _response(tensors: dict[str, Any]) -> Any:
    import numpy as np
    import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

    return triton.InferenceResponse(
        [triton.Tensor(name, np.ascontiguousarray(array)) for name, array in tensors.items()]
    )


def _refusal(text: str, *, of_client: bool) -> Any:
    import triton_python_backend_utils as triton

    codes = triton.TritonError
    return triton.InferenceResponse(error=codes(text, codes.INVALID_ARG if of_client else codes.INTERNAL))
