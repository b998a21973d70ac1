"""Client: asks a server that speaks the KServe v2 protocol, over HTTP or gRPC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from engine.client import address as addresses
from engine.client import counters, entry, failures
from engine.client.address import Address
from engine.client.entry import Entry
from engine.client.grpc_line import GrpcLine
from engine.client.http_line import HttpLine
from engine.errors import StepError

if TYPE_CHECKING:
    import numpy as np

TIMEOUT = 60.0
"""Seconds to wait for an answer, where nobody says otherwise."""
_READY = "READY"


def _line(address: Address, timeout: float) -> HttpLine | GrpcLine:
    """Return a line to the server. Raises StepError where what speaks its protocol is not installed."""
    try:
        return HttpLine(address, timeout) if address.protocol == "http" else GrpcLine(address, timeout)
    except (ImportError, RuntimeError) as error:  # tritonclient turns the one into the other
        way = f"pip install 'tritonclient[{address.protocol}]'"
        raise StepError(f"{address.url()} cannot be asked from here", [str(error)], way) from error


class Client:
    """A line to one server, opened by its URL.

    `http://HOST:PORT` and `grpc://HOST:PORT` say the protocol, `HOST:PORT` finds it out. Every method raises
    `failures.Gone` where the server went away or keeps silent for `timeout` seconds, and `failures.Refused` with its
    own words where it answers with an error; both are StepErrors.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT) -> None:
        self.address: Address = addresses.resolved(url)
        self.timeout = timeout
        self._line = _line(self.address, timeout)
        self._models: list[Entry] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def models(self) -> list[Entry]:
        """Return every model that is ready, by the server's own index and configurations; looked up once."""
        if self._models is None:
            with self._told("to list its models"):
                index = self._line.index()
                names = dict.fromkeys(each["name"] for each in index if each.get("state") == _READY)
                self._models = [Entry.of_config(self._line.config(name)) for name in names]
                self._broken = {each["name"]: each for each in index if each["name"] not in names}
        return self._models

    def entries(self) -> list[Entry]:
        """Return the models that clients call."""
        return entry.callable_ones(self.models())

    def choose(self, name: str | None = None, *, stream: bool = False) -> Entry:
        """Return the model that is meant, the streaming one of two if `stream`. One that is named and streams is kept.

        Raises UsageError for a name that the server lacks, and where several models can be asked and none is named;
        StepError for a model that is not ready.
        """
        try:
            models = self.models()
        except failures.Refused:
            if name is None:
                raise
            with self._told(f"to describe {name}"):  # a server without Triton's extensions tells this much
                return Entry.of_metadata(self._line.metadata(name))
        if name in self._broken:
            state, reason = (self._broken[name].get(field) for field in ("state", "reason"))
            why = f"{state or 'UNAVAILABLE'}: {reason or 'no reason given'}"
            raise StepError(f"the model {name} is not ready", [why], "the server's log says more")
        chosen = entry.choose(models, name, stream=stream)
        if chosen.decoupled != stream and (stream or name is None):
            chosen = entry.sibling(models, chosen, stream=stream) or chosen
        return chosen

    def infer(self, model: Entry, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name. Texts are arrays of bytes objects; what is not given must be optional."""
        return self.asking(model, arrays)()[1]()

    def asking(
        self, model: Entry, arrays: Mapping[str, np.ndarray]
    ) -> Callable[[], tuple[float, Callable[[], dict[str, np.ndarray]]]]:
        """Return what sends this very request, as often as it is called: seconds it took, and what decodes the answer.

        Neither putting the inputs together nor decoding the outputs counts.
        """
        with self._told(f"the request to {model.name}"):
            inputs = self._line.prepared(model, arrays)

        def ask() -> tuple[float, Callable[[], dict[str, np.ndarray]]]:
            with self._told(f"the request to {model.name}"):
                start = perf_counter()
                answer = self._line.ask(model, inputs)
                return perf_counter() - start, lambda: self._line.decoded(answer)

        return ask

    def stream(self, model: Entry, arrays: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
        """Give the outputs of each piece of the answer of a model that streams, as it comes."""
        with self._told(f"the request to {model.name}"):
            yield from self._line.pieces(model, arrays)

    def statistics(self) -> dict[str, counters.Counters]:
        """Return the server's counters by model, as they stand now."""
        with self._told("to tell its statistics"):
            return counters.read(self._line.statistics())

    def _told(self, doing: str) -> Any:
        return failures.told(self.address, doing, timeout=self.timeout)
