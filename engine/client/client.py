"""Client: asks a server that speaks the KServe v2 protocol, over HTTP or gRPC."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from engine.client import address as addresses
from engine.client import encoded, failures, figures, model_metadata
from engine.client.address import Address
from engine.client.encoded import infer_inputs
from engine.client.model_metadata import ModelMetadata, ModelState
from engine.errors import StepError

if TYPE_CHECKING:
    import numpy as np

TIMEOUT = 60.0
"""Seconds to wait for a response by default."""
_ABOUT_THE_MODEL = ("model_name", "model_version", "sequence_id", "sequence_start", "sequence_end")
"""Fields of an event of Triton's extension "generate" that are no outputs of the model."""
_DATA = b"data:"
_FINAL = "triton_final_response"


@dataclass(frozen=True)
class TimedResponse:
    """The response to a request, not decoded yet, and the seconds from the request to the response."""

    seconds: float
    outputs: Callable[[], dict[str, np.ndarray]]
    """Returns the decoded outputs of the response, by the name of the output."""


class Client:
    """A connection to one server, opened by the server's URL.

    `http://HOST:PORT` and `grpc://HOST:PORT` name the protocol; for `HOST:PORT` the client finds out which one it is.
    Every method raises `failures.ServerGoneError` where the server went away or sends nothing for `timeout` seconds,
    and `failures.RequestRefusedError` with the server's message where it answers with an error: both are StepErrors.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT) -> None:
        self.address: Address = addresses.resolved(url)
        self.timeout = timeout
        self._line = _line(self.address, timeout)
        self._models: list[ModelMetadata] | None = None
        self._states: dict[str, ModelState] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def server_metadata(self) -> dict[str, object]:
        """Return the server's name and version, and the extensions of the protocol that the server supports."""
        with self._translated("to describe itself"):
            return self._line.server_metadata()

    def states(self) -> dict[str, ModelState]:
        """Return the state of each model in the server's repository index."""
        with self._translated("to list its models"):
            index = self._line.index()
        states: dict[str, ModelState] = {}
        for row in index:
            state = ModelState(str(row.get("state", "")), str(row.get("reason", "")))
            if row["name"] not in states or state.ready:  # a model of several versions needs only one that is ready
                states[row["name"]] = state
        return states

    def models(self) -> list[ModelMetadata]:
        """Return the metadata of every model that is ready; the server is asked only once."""
        if self._models is None:
            self._states = self.states()
            with self._translated("to list its models"):
                ready = [name for name, state in self._states.items() if state.ready]
                self._models = [ModelMetadata.of_config(self._line.config(name)) for name in ready]
        return self._models

    def entries(self) -> list[ModelMetadata]:
        """Return the metadata of the server's models that clients call."""
        return model_metadata.entries(self.models())

    def choose(self, name: str | None = None, *, stream: bool = False) -> ModelMetadata:
        """Return the model `name`; where `name` is None, the only model that clients call.

        Where a package has a streaming model and a whole-answer model, `stream` chooses between the two models. A
        streaming model whose name is given is returned even where `stream` is false. Raises UsageError for a name that
        the server lacks, and for several models without a name; StepError for a model that is not ready.
        """
        try:
            models = self.models()
        except failures.RequestRefusedError as refused:
            if name is None:
                what = f"{self.address.url()} does not list its models"
                hint = "a proxy may hide the list: name the model with --model NAME"
                raise StepError(what, refused.facts, hint) from None
            return self._described(name)
        if name is not None and name in self._states and not self._states[name].ready:
            state = self._states[name]
            why = f"{state.state or 'UNAVAILABLE'}: {state.reason or 'no reason given'}"
            raise StepError(f"the model {name} is not ready", [why], "the server's log says more")
        chosen = model_metadata.choose(models, name, stream=stream)
        if chosen.decoupled != stream and (stream or name is None):
            chosen = model_metadata.sibling(models, chosen, stream=stream) or chosen
        return chosen

    def _described(self, name: str) -> ModelMetadata:
        """Return a model without the server's list; servers without Triton's extensions have metadata only."""
        with contextlib.suppress(failures.RequestRefusedError), self._translated(f"to describe {name}"):
            return ModelMetadata.of_config(self._line.config(name))
        with self._translated(f"to describe {name}"):
            return ModelMetadata.of_metadata(self._line.model_metadata(name))

    def infer(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Send one request and return all outputs by name. Texts are arrays of bytes objects."""
        with self._translated(f"the request to {model.name}"):
            return self._line.outputs(self._line.infer(model, self._line.inputs(model, arrays)))

    def prepare(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> Callable[[], TimedResponse]:
        """Return a call that sends the same request each time, and times it without encoding and decoding."""
        with self._translated(f"the request to {model.name}"):
            inputs = self._line.inputs(model, arrays)

        def send() -> TimedResponse:
            with self._translated(f"the request to {model.name}"):
                start = perf_counter()
                response = self._line.infer(model, inputs)
                return TimedResponse(perf_counter() - start, lambda: self._line.outputs(response))

        return send

    def stream(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
        """Send one request to a streaming model; yield the outputs of each piece of the answer when the piece comes."""
        with self._translated(f"the request to {model.name}"):
            yield from self._line.stream(model, arrays)

    def statistics(self) -> dict[str, figures.Counters]:
        """Return the server's counters of each model as they stand now, by the model's name."""
        with self._translated("to tell its statistics"):
            return figures.read(self._line.statistics())

    def _translated(self, action: str) -> AbstractContextManager[None]:
        return failures.translated(self.address, action, timeout=self.timeout)


def _line(address: Address, timeout: float) -> HttpLine | GrpcLine:
    """Return the connection to the server. Raises StepError where tritonclient lacks a module for its protocol."""
    try:
        return HttpLine(address, timeout) if address.protocol == "http" else GrpcLine(address, timeout)
    except (ImportError, RuntimeError) as error:  # tritonclient turns an ImportError into a RuntimeError
        hint = f"pip install 'tritonclient[{address.protocol}]'"
        raise StepError(f"no request can be sent to {address.url()}", [str(error)], hint) from error


class _Line:
    """A connection for one request at a time, by the calls of `module`: tritonclient.http or .grpc, with `options`."""

    def __init__(self, module: Any, client: Any, **options: Any) -> None:
        self._module, self._client, self._options = module, client, options

    def server_metadata(self) -> dict[str, object]:
        return dict(self._client.get_server_metadata(**self._plain))

    def index(self) -> list[dict[str, str]]:
        """Return the repository index: name, version, state and reason of each model."""
        index = self._client.get_model_repository_index(**self._plain)
        return list(index.get("models", ()) if isinstance(index, dict) else index)

    def config(self, name: str) -> dict[str, object]:
        config = self._client.get_model_config(name, **self._plain)
        return dict(config.get("config", config))

    def model_metadata(self, name: str) -> dict[str, object]:
        return dict(self._client.get_model_metadata(name, **self._plain))

    def statistics(self) -> list[dict[str, object]]:
        return list(self._client.get_inference_statistics(**self._plain).get("model_stats", ()))

    def inputs(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> list[Any]:
        return infer_inputs(self._module.InferInput, model, arrays)

    def infer(self, model: ModelMetadata, inputs: Sequence[Any]) -> Any:
        """Send one request and return the response, not decoded yet."""
        return self._client.infer(model.name, list(inputs), **self._options)

    def close(self) -> None:
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
        """Send one row to a streaming model; yield the outputs in each server-sent event, a piece of the answer."""
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
        """Send one row to a streaming model; yield the outputs of each piece. Raises TimeoutError where none comes."""
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
