"""Encoded: a request as the bytes that go over the line, so that a load generator has nothing left to compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.client.address import Address
from engine.client.answers import tokens_in
from engine.client.entry import Entry
from engine.client.filling import filled

if TYPE_CHECKING:
    import numpy as np

TOKENS = "token_ids"


def request(address: Address, entry: Entry, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return an HTTP/1.1 request, head and body, or the message ModelInferRequest."""
    return (_http if address.protocol == "http" else _grpc)(address, entry, arrays)


def tokens_of_http(head: bytes, body: bytes) -> int:
    """Return how many tokens an answer over HTTP holds."""
    from tritonclient.http import InferResult

    length = head_field(head, b"inference-header-content-length")
    return _tokens(InferResult.from_response_body(body, header_length=int(length) if length else None))


def tokens_of_grpc(body: bytes) -> int:
    """Return how many tokens a ModelInferResponse holds."""
    from tritonclient.grpc import InferResult, service_pb2

    return _tokens(InferResult(service_pb2.ModelInferResponse.FromString(body)))


def head_field(head: bytes, name: bytes) -> bytes:
    """Return a field of an HTTP head, empty where it is not there."""
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return b""


def _tokens(result: Any) -> int:
    found = result.as_numpy(TOKENS)
    return 0 if found is None else tokens_in(found)


def _http(address: Address, entry: Entry, arrays: Mapping[str, np.ndarray]) -> bytes:
    from tritonclient import http as triton

    inputs = filled(triton.InferInput, entry, arrays)
    body, length = triton.InferenceServerClient.generate_request_body(inputs)
    fields = {
        "Host": address.place,
        "Content-Type": "application/octet-stream" if length else "application/json",
        "Content-Length": len(body),
        **({"Inference-Header-Content-Length": length} if length else {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST /v2/models/{entry.name}/infer HTTP/1.1\r\n{head}\r\n".encode() + bytes(body)


def _grpc(_: Address, entry: Entry, arrays: Mapping[str, np.ndarray]) -> bytes:
    from tritonclient.grpc import service_pb2
    from tritonclient.utils import serialize_byte_tensor

    message = service_pb2.ModelInferRequest(model_name=entry.name)
    for tensor in entry.inputs:
        if tensor.name in arrays:
            array = arrays[tensor.name]
            message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=array.shape)
            texts = tensor.datatype == "BYTES"
            content = serialize_byte_tensor(array).item() if texts else array.tobytes()
            message.raw_input_contents.append(content)
    return bytes(message.SerializeToString())
