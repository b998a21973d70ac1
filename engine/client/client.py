"""Client: asks a server that speaks the KServe v2 protocol, over HTTP or gRPC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Self

from engine.client import address as addresses
from engine.client import counters, failures, model_metadata
from engine.client.address import Address
from engine.client.lines import GrpcLine, HttpLine
from engine.client.model_metadata import ModelMetadata, ModelState
from engine.errors import StepError

if TYPE_CHECKING:
    import numpy as np

TIMEOUT = 60.0
"""Seconds to wait for a response by default."""


@dataclass(frozen=True)
class TimedResponse:
    """The response to a request, not decoded yet, and the seconds from the request to the response."""

    seconds: float
    outputs: Callable[[], dict[str, np.ndarray]]
    """Returns the decoded outputs of the response, by the name of the output."""


class Client:
    """A connection to one server, opened by the server's URL.

    `http://HOST:PORT` and `grpc://HOST:PORT` name the protocol; for `HOST:PORT` the client finds out which protocol the
    server speaks. Every method raises `failures.ServerGoneError` where the server went away or sends nothing for
    `timeout` seconds, and `failures.RequestRefusedError` with the server's message where the server answers with an
    error. ServerGoneError and RequestRefusedError are StepErrors.
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
        """Return the metadata of every model that is ready.

        The client asks the server for its models only once, and keeps the metadata of the models.
        """
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
        except failures.RequestRefusedError:
            if name is None:
                raise
            with self._translated(f"to describe {name}"):  # servers without Triton's extensions have metadata only
                return ModelMetadata.of_metadata(self._line.model_metadata(name))
        if name is not None and name in self._states and not self._states[name].ready:
            state = self._states[name]
            why = f"{state.state or 'UNAVAILABLE'}: {state.reason or 'no reason given'}"
            raise StepError(f"the model {name} is not ready", [why], "the server's log says more")
        chosen = model_metadata.choose(models, name, stream=stream)
        if chosen.decoupled != stream and (stream or name is None):
            chosen = model_metadata.sibling(models, chosen, stream=stream) or chosen
        return chosen

    def infer(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Send one request and return all outputs of the response by name.

        Texts are arrays of bytes objects. An input that `arrays` lacks must be optional for the model.
        """
        with self._translated(f"the request to {model.name}"):
            return self._line.outputs(self._line.infer(model, self._line.inputs(model, arrays)))

    def prepare(self, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> Callable[[], TimedResponse]:
        """Return a call that sends the same request each time, and times the response.

        The measured time contains neither the encoding of the inputs nor the decoding of the outputs.
        """
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

    def statistics(self) -> dict[str, counters.Counters]:
        """Return the server's counters of each model as they stand now, by the model's name."""
        with self._translated("to tell its statistics"):
            return counters.read(self._line.statistics())

    def _translated(self, action: str) -> AbstractContextManager[None]:
        return failures.translated(self.address, action, timeout=self.timeout)


def _line(address: Address, timeout: float) -> HttpLine | GrpcLine:
    """Return the connection to the server over HTTP or gRPC.

    Raises StepError where tritonclient lacks a module that HTTP or gRPC needs.
    """
    try:
        return HttpLine(address, timeout) if address.protocol == "http" else GrpcLine(address, timeout)
    except (ImportError, RuntimeError) as error:  # tritonclient turns an ImportError into a RuntimeError
        hint = f"pip install 'tritonclient[{address.protocol}]'"
        raise StepError(f"no request can be sent to {address.url()}", [str(error)], hint) from error
