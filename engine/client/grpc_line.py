"""gRPC: the KServe v2 protocol by tritonclient, with answers in pieces over its stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from engine.client.address import Address
from engine.client.entry import Entry
from engine.client.filling import filled

if TYPE_CHECKING:
    import numpy as np

_FINAL = "triton_final_response"


class GrpcLine:
    """One channel; what fails is raised as tritonclient raises it."""

    def __init__(self, address: Address, timeout: float) -> None:
        from tritonclient import grpc as triton

        self._timeout = timeout
        self._client = triton.InferenceServerClient(address.place, ssl=address.tls)

    def index(self) -> list[dict[str, str]]:
        """Return name, state and reason of each model."""
        said = self._client.get_model_repository_index(as_json=True, client_timeout=self._timeout)
        return list(said.get("models", ()))

    def config(self, name: str) -> dict[str, object]:
        """Return a model's configuration, as JSON has it."""
        return dict(self._client.get_model_config(name, as_json=True, client_timeout=self._timeout)["config"])

    def metadata(self, name: str) -> dict[str, object]:
        """Return what the protocol has every server tell of a model."""
        return dict(self._client.get_model_metadata(name, as_json=True, client_timeout=self._timeout))

    def statistics(self) -> list[dict[str, object]]:
        """Return the counters of each model."""
        said = self._client.get_inference_statistics(as_json=True, client_timeout=self._timeout)
        return list(said.get("model_stats", ()))

    def prepared(self, entry: Entry, arrays: Mapping[str, np.ndarray]) -> list[Any]:
        """Return the inputs as they are sent."""
        from tritonclient import grpc as triton

        return filled(triton.InferInput, entry, arrays)

    def ask(self, entry: Entry, inputs: Sequence[Any]) -> Any:
        """Send one request and return the undecoded answer."""
        return self._client.infer(entry.name, list(inputs), client_timeout=self._timeout)

    def decoded(self, answer: Any) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        return {output.name: answer.as_numpy(output.name) for output in answer.get_response().outputs}

    def pieces(self, entry: Entry, arrays: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
        """Send one row and give each piece of its answer as it comes. Raises TimeoutError where none comes."""
        heard: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        self._client.start_stream(lambda result, error: heard.put((result, error)))
        try:
            self._client.async_stream_infer(entry.name, self.prepared(entry, arrays), enable_empty_final_response=True)
            final = False
            while not final:
                try:
                    result, error = heard.get(timeout=self._timeout)
                except Empty:
                    raise TimeoutError from None
                if error is not None:
                    raise error
                final = result.get_response().parameters[_FINAL].bool_param
                if result.get_response().outputs:
                    yield self.decoded(result)
        finally:
            self._client.stop_stream(cancel_requests=True)

    def close(self) -> None:
        """Close the channel."""
        self._client.close()
