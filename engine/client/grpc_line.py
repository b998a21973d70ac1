"""GrpcLine: a connection that speaks the KServe v2 protocol over gRPC; a streaming model answers over a gRPC stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from engine.client.address import Address
from engine.client.inputs import infer_inputs
from engine.client.model_metadata import ModelMetadata

if TYPE_CHECKING:
    import numpy as np

_FINAL = "triton_final_response"


class GrpcLine:
    """One gRPC channel. Errors are tritonclient's own exceptions."""

    def __init__(self, address: Address, timeout: float) -> None:
        from tritonclient import grpc as triton

        self._timeout = timeout
        self._client = triton.InferenceServerClient(address.place, ssl=address.tls)

    def server_metadata(self) -> dict[str, object]:
        """Return the server's metadata: its name, version and extensions."""
        return dict(self._client.get_server_metadata(as_json=True, client_timeout=self._timeout))

    def index(self) -> list[dict[str, str]]:
        """Return the repository index: name, version, state and reason of each model."""
        index = self._client.get_model_repository_index(as_json=True, client_timeout=self._timeout)
        return list(index.get("models", ()))

    def config(self, name: str) -> dict[str, object]:
        """Return a model's ModelConfig as JSON."""
        return dict(self._client.get_model_config(name, as_json=True, client_timeout=self._timeout)["config"])

    def model_metadata(self, name: str) -> dict[str, object]:
        """Return a model's metadata, which every KServe v2 server has."""
        return dict(self._client.get_model_metadata(name, as_json=True, client_timeout=self._timeout))

    def statistics(self) -> list[dict[str, object]]:
        """Return the counters of each model."""
        statistics = self._client.get_inference_statistics(as_json=True, client_timeout=self._timeout)
        return list(statistics.get("model_stats", ()))

    def inputs(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> list[Any]:
        """Return the arrays as encoded inputs of a request over gRPC."""
        from tritonclient import grpc as triton

        return infer_inputs(triton.InferInput, model, arrays)

    def infer(self, model: ModelMetadata, inputs: Sequence[Any]) -> Any:
        """Send one request and return the response, not decoded yet."""
        return self._client.infer(model.name, list(inputs), client_timeout=self._timeout)

    def outputs(self, response: Any) -> dict[str, np.ndarray]:
        """Return all outputs of a response by name."""
        return {output.name: response.as_numpy(output.name) for output in response.get_response().outputs}

    def stream(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
        """Send one row to a streaming model and yield the outputs of each piece of the answer.

        Raises TimeoutError where no piece of the answer comes in time.
        """
        responses: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        self._client.start_stream(lambda result, error: responses.put((result, error)))  # tritonclient uses these names
        try:
            self._client.async_stream_infer(model.name, self.inputs(model, arrays), enable_empty_final_response=True)
            final = False
            while not final:
                try:
                    response, error = responses.get(timeout=self._timeout)
                except Empty:
                    raise TimeoutError from None
                if error is not None:
                    raise error
                final = response.get_response().parameters[_FINAL].bool_param
                if response.get_response().outputs:
                    yield self.outputs(response)
        finally:
            self._client.stop_stream(cancel_requests=True)

    def close(self) -> None:
        """Close the channel."""
        self._client.close()
