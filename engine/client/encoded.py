"""Encoded requests: whole requests as bytes, so that a load generator only has to send them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine.client.address import Address
from engine.client.answers import tokens_in
from engine.client.model_metadata import ModelMetadata

if TYPE_CHECKING:
    import numpy as np

TOKENS = "token_ids"
"""The output with the generated tokens."""


def request(address: Address, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return a request as bytes: the head and the body for HTTP/1.1, or gRPC's message ModelInferRequest."""
    if address.protocol == "http" and model.decoupled:
        body = json.dumps({name: plain(array) for name, array in arrays.items()}).encode()
        fields = {"Host": address.place, "Content-Type": "application/json", "Content-Length": len(body)}
        return _with_head(f"/v2/models/{model.name}/generate_stream", fields, body)
    return _http(address, model, arrays) if address.protocol == "http" else _grpc(model, arrays)


def tokens_of_http(head: bytes, body: bytes) -> int:
    """Return the number of generated tokens in an HTTP response."""
    from tritonclient.http import InferResult

    length = head_field(head, b"inference-header-content-length")
    return _tokens(InferResult.from_response_body(body, header_length=int(length) if length else None))


def tokens_of_grpc(message: Any) -> int:
    """Return the number of generated tokens in a ModelInferResponse."""
    from tritonclient.grpc import InferResult

    return _tokens(InferResult(message))


def plain(array: np.ndarray) -> Any:
    """Return an array as JSON of the extension "generate": one value alone, several values as a flat list."""
    values = [value.decode() if isinstance(value, bytes) else value for value in array.ravel().tolist()]
    return values[0] if len(values) == 1 else values


def head_field(head: bytes, name: bytes) -> bytes:
    """Return a header field of an HTTP message, empty where the message lacks the field; `name` is in lower case."""
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return b""


def _tokens(response: Any) -> int:
    token_ids = response.as_numpy(TOKENS)
    return 0 if token_ids is None else tokens_in(token_ids)


def _http(address: Address, model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> bytes:
    from tritonclient import http as triton

    inputs = infer_inputs(triton.InferInput, model, arrays)
    body, length = triton.InferenceServerClient.generate_request_body(inputs)
    fields = {
        "Host": address.place,
        "Content-Type": "application/octet-stream" if length else "application/json",
        "Content-Length": len(body),
        **({"Inference-Header-Content-Length": length} if length else {}),
    }
    return _with_head(f"/v2/models/{model.name}/infer", fields, bytes(body))


def _with_head(path: str, fields: Mapping[str, object], body: bytes) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def _grpc(model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> bytes:
    from tritonclient.grpc import service_pb2

    message = service_pb2.ModelInferRequest(model_name=model.name)
    for tensor in model.inputs:
        if tensor.name in arrays:
            array = arrays[tensor.name]
            message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=array.shape)
            message.raw_input_contents.append(raw_bytes(tensor.datatype, array))
    if model.decoupled:
        message.parameters["triton_enable_empty_final_response"].bool_param = True
    return bytes(message.SerializeToString())


def infer_inputs(infer_input: Callable[..., Any], model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> list[Any]:
    """Return an InferInput, of tritonclient.http or tritonclient.grpc, for each input of the model in `arrays`."""
    inputs = []
    for tensor in model.inputs:
        if tensor.name in arrays:
            value = infer_input(tensor.name, list(arrays[tensor.name].shape), tensor.datatype)
            value.set_data_from_numpy(arrays[tensor.name])
            inputs.append(value)
    return inputs


def raw_bytes(datatype: str, array: np.ndarray) -> bytes:
    """Return an array as raw tensor content of the KServe protocol: each text has its length in four bytes in front."""
    from tritonclient.utils import serialize_byte_tensor

    if datatype != "BYTES":
        return bytes(array.tobytes())
    return bytes(serialize_byte_tensor(array).item()) if array.size else b""
