"""Lines: connections that speak the KServe v2 protocol by tritonclient, over HTTP or gRPC."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from engine.client import encoded, failures
from engine.client.address import Address
from engine.client.inputs import infer_inputs
from engine.client.model_metadata import ModelMetadata

if TYPE_CHECKING:
    import numpy as np

_ABOUT_THE_MODEL = ("model_name", "model_version", "sequence_id", "sequence_start", "sequence_end")
"""Fields of an event of Triton's extension "generate" that are no outputs of the model."""
_DATA = b"data:"
_FINAL = "triton_final_response"


class _Line:
    """A connection that sends one request at a time. Errors are tritonclient's own exceptions.

    `module` is `tritonclient.http` or `tritonclient.grpc`: both have the same calls, with other `options`.
    """

    def __init__(self, module: Any, client: Any, **options: Any) -> None:
        self._module, self._client, self._options = module, client, options

    def server_metadata(self) -> dict[str, object]:
        """Return the server's metadata: its name, version and extensions."""
        return dict(self._client.get_server_metadata(**self._plain))

    def index(self) -> list[dict[str, str]]:
        """Return the repository index: name, version, state and reason of each model."""
        index = self._client.get_model_repository_index(**self._plain)
        return list(index.get("models", ()) if isinstance(index, dict) else index)

    def config(self, name: str) -> dict[str, object]:
        """Return a model's ModelConfig as JSON."""
        config = self._client.get_model_config(name, **self._plain)
        return dict(config.get("config", config))

    def model_metadata(self, name: str) -> dict[str, object]:
        """Return a model's metadata, which every KServe v2 server has."""
        return dict(self._client.get_model_metadata(name, **self._plain))

    def statistics(self) -> list[dict[str, object]]:
        """Return the counters of each model."""
        return list(self._client.get_inference_statistics(**self._plain).get("model_stats", ()))

    def inputs(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> list[Any]:
        """Return the arrays as encoded inputs of a request."""
        return infer_inputs(self._module.InferInput, model, arrays)

    def infer(self, model: ModelMetadata, inputs: Sequence[Any]) -> Any:
        """Send one request and return the response, not decoded yet."""
        return self._client.infer(model.name, list(inputs), **self._options)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    @property
    def _plain(self) -> dict[str, Any]:
        """The options of a call that asks for JSON: over HTTP, every answer is."""
        return {"as_json": True, **self._options} if self._options else {}


class HttpLine(_Line):
    """A connection to a server over HTTP; a streaming model answers by Triton's extension "generate"."""

    def __init__(self, address: Address, timeout: float) -> None:
        from tritonclient import http as triton

        self._address, self._timeout = address, timeout
        times = {"connection_timeout": timeout, "network_timeout": timeout}
        super().__init__(triton, triton.InferenceServerClient(address.place, ssl=address.tls, **times))

    def outputs(self, response: Any) -> dict[str, np.ndarray]:
        """Return all outputs of a response by name."""
        return {output["name"]: response.as_numpy(output["name"]) for output in response.get_response()["outputs"]}

    def stream(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
        """Send one row to a streaming model and yield the outputs of each piece of the answer.

        Triton's extension "generate" sends server-sent events. Each server-sent event holds the outputs of one piece of
        the answer as JSON.
        """
        body = {name: encoded.plain(array) for name, array in arrays.items()}
        connection = self._connection()
        try:
            connection.request("POST", f"/v2/models/{model.name}/generate_stream", json.dumps(body).encode())
            response = connection.getresponse()
            if response.status != http.client.OK:
                content = response.read()
                message = failures.error_message(content) or content.decode(errors="replace")
                raise failures.refused(f"the request to {model.name}", message)
            while event := response.readline():
                if event.startswith(_DATA):
                    yield _piece(model, json.loads(event[len(_DATA) :]))
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port, timeout = self._address.host, self._address.port, self._timeout
        if self._address.tls:
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=timeout)


class GrpcLine(_Line):
    """One gRPC channel; a streaming model answers over a gRPC stream."""

    def __init__(self, address: Address, timeout: float) -> None:
        from tritonclient import grpc as triton

        self._timeout = timeout
        client = triton.InferenceServerClient(address.place, ssl=address.tls)
        super().__init__(triton, client, client_timeout=timeout)

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


def _piece(model: ModelMetadata, event: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the outputs in one server-sent event, each as an array of one row."""
    import numpy as np

    if "error" in event:
        raise failures.refused(f"the request to {model.name}", str(event["error"]))
    piece = {}
    for name, value in event.items():
        if name not in _ABOUT_THE_MODEL:
            values = value if isinstance(value, list) else [value]
            row = [each.encode() if isinstance(each, str) else each for each in values]
            texts = any(isinstance(each, bytes) for each in row)
            piece[name] = np.array([row], dtype=object if texts else None)
    return piece
