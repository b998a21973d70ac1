"""HTTP: the KServe v2 protocol by tritonclient, and answers in pieces by Triton's generate_stream."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.client import failures
from engine.client.address import Address
from engine.client.entry import Entry
from engine.client.filling import filled

if TYPE_CHECKING:
    import numpy as np

_ABOUT_THE_MODEL = ("model_name", "model_version", "sequence_id", "sequence_start", "sequence_end")
_DATA = b"data:"


class HttpLine:
    """One connection at a time; what fails is raised as tritonclient raises it."""

    def __init__(self, address: Address, timeout: float) -> None:
        from tritonclient import http as triton

        self._address, self._timeout = address, timeout
        self._client = triton.InferenceServerClient(
            address.place, ssl=address.tls, connection_timeout=timeout, network_timeout=timeout
        )

    def index(self) -> list[dict[str, str]]:
        """Return name, state and reason of each model."""
        return list(self._client.get_model_repository_index())

    def config(self, name: str) -> dict[str, object]:
        """Return a model's configuration, as JSON has it."""
        return dict(self._client.get_model_config(name))

    def metadata(self, name: str) -> dict[str, object]:
        """Return what the protocol has every server tell of a model."""
        return dict(self._client.get_model_metadata(name))

    def statistics(self) -> list[dict[str, object]]:
        """Return the counters of each model."""
        return list(self._client.get_inference_statistics()["model_stats"])

    def prepared(self, entry: Entry, arrays: Mapping[str, np.ndarray]) -> list[Any]:
        """Return the inputs as they are sent, tensors in binary."""
        from tritonclient import http as triton

        return filled(triton.InferInput, entry, arrays)

    def ask(self, entry: Entry, inputs: Sequence[Any]) -> Any:
        """Send one request and return the undecoded answer."""
        return self._client.infer(entry.name, list(inputs))

    def decoded(self, answer: Any) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        return {output["name"]: answer.as_numpy(output["name"]) for output in answer.get_response()["outputs"]}

    def pieces(self, entry: Entry, arrays: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
        """Send one row and give each piece of its answer as it comes.

        Triton's extension "generate": server-sent events, each with the outputs of a piece as JSON.
        """
        body = {name: _plain(array) for name, array in arrays.items()}
        line: http.client.HTTPConnection = (
            http.client.HTTPSConnection(self._address.host, self._address.port, timeout=self._timeout,
                                        context=ssl.create_default_context())
            if self._address.tls
            else http.client.HTTPConnection(self._address.host, self._address.port, timeout=self._timeout)
        )  # fmt: skip
        try:
            line.request("POST", f"/v2/models/{entry.name}/generate_stream", json.dumps(body).encode())
            answer = line.getresponse()
            if answer.status != http.client.OK:
                raise failures.refused(f"the request to {entry.name}", _said(answer.read()))
            while event := answer.readline():
                if event.startswith(_DATA):
                    yield _piece(entry, json.loads(event[len(_DATA) :]))
        finally:
            line.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _plain(array: np.ndarray) -> Any:
    """Return an array as the extension takes it: one value by itself, several as a flat list."""
    values = [value.decode() if isinstance(value, bytes) else value for value in array.ravel().tolist()]
    return values[0] if len(values) == 1 else values


def _said(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")


def _piece(entry: Entry, said: Mapping[str, Any]) -> dict[str, np.ndarray]:
    import numpy as np

    if "error" in said:
        raise failures.refused(f"the request to {entry.name}", str(said["error"]))
    piece = {}
    for name, value in said.items():
        if name not in _ABOUT_THE_MODEL:
            values = value if isinstance(value, list) else [value]
            encoded = [each.encode() if isinstance(each, str) else each for each in values]
            texts = any(isinstance(each, bytes) for each in encoded)
            piece[name] = np.array([encoded], dtype=object if texts else None)
    return piece
