"""The ways in which a stranger sends bytes to a server: HTTP and HTTP/2 as they are, and gRPC by its own library."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

TEXT_MODEL, MODEL_BEHIND, NUMBERS = "plain_text", "plain", "same"
"""Models of the server: an ensemble that takes TEXT, the ONNX model behind it, and a Python model that takes `x`."""
PATIENCE = 0.3
"""Seconds for which an abuse waits for an answer that may never come."""


@dataclass(frozen=True)
class Target:
    """Where the proxy listens: a port for HTTP, and an address for gRPC."""

    http: int
    grpc: str

    @property
    def grpc_port(self) -> int:
        return int(self.grpc.rpartition(":")[2])


Abuse = Callable[[Target], object]


# Over HTTP: bytes as they are


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def reset(connection: socket.socket) -> None:
    """Close a connection so that the other side gets a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def send(port: int, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Send pieces, with a pause between them; return the beginning of the answer, if one comes."""
    with connected(port) as connection, contextlib.suppress(OSError):
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        return connection.recv(65536)
    return b""


def http(*pieces: bytes, pause: float = 0.0) -> Abuse:
    return lambda target: send(target.http, *pieces, pause=pause)


def head(path: str, *headers: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *headers, "", ""]).encode("latin-1")


def infer(model: str) -> str:
    return f"/v2/models/{model}/infer"


def post(body: bytes, *headers: str, path: str = infer(NUMBERS)) -> bytes:
    return head(path, f"Content-Length: {len(body)}", *headers) + body


def tensors(*given: object, **more: object) -> bytes:
    return json.dumps({"inputs": given, **more}).encode()


def x(data: object = (1,), shape: object = (1,), **more: object) -> dict[str, object]:
    return {"name": "x", "shape": shape, "datatype": "INT64", "data": data, **more}


def text(value: str = "a short text") -> bytes:
    return tensors({"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": [value]})


def ids(*numbers: int) -> bytes:
    names = ("input_ids", "attention_mask")
    rows = [{"name": name, "shape": [1, len(numbers)], "datatype": "INT64", "data": numbers} for name in names]
    return tensors(*rows)


def coded(body: bytes, *headers: str) -> Abuse:
    return http(post(body, *headers))


def get(path: str) -> Abuse:
    return http(head(path, method="GET"))


def to(path: str, body: bytes = b"{}") -> Abuse:
    return http(post(body, path=path))


def asked(*given: object, **more: object) -> Abuse:
    """Send tensors to the model of numbers."""
    return to(infer(NUMBERS), tensors(*given, **more))


def many(count: int, piece: bytes) -> Abuse:
    """Open connections that send the beginning of something, and hold them for a while."""

    def abuse(target: Target) -> None:
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(connected(target.http)).sendall(piece)
            time.sleep(1)

    return abuse


def hang_up(count: int, piece: bytes, end: Callable[[socket.socket], None]) -> Abuse:
    """Let as many clients send a request and hang up before the answer is there."""

    def abuse(target: Target) -> None:
        connections = [connected(target.http) for _ in range(count)]
        for connection in connections:
            connection.sendall(piece)
        for connection in connections:
            end(connection)

    return abuse


# HTTP/2, frame by frame (RFC 9113; header fields as RFC 7541, 6.2.2 writes them)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
CALL = "/inference.GRPCInferenceService/ModelInfer"


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def fields(**more: str) -> bytes:
    own = {":method": "POST", ":scheme": "http", ":path": CALL, ":authority": "a", "te": "trailers"}
    own |= {"content-type": "application/grpc"} | {name.replace("_", "-"): value for name, value in more.items()}
    return b"".join(
        b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
        for name, value in own.items()
    )


def message(payload: bytes, *, compressed: int = 0, length: int | None = None) -> bytes:
    return bytes((compressed,)) + (len(payload) if length is None else length).to_bytes(4, "big") + payload


def call(payload: bytes, *, stream: int = 1, **more: str) -> bytes:
    begin = frame(HEADERS, fields(**more), flags=END_HEADERS, stream=stream)
    return begin + frame(DATA, payload, flags=END_STREAM, stream=stream)


def h2(*frames: bytes) -> Abuse:
    return lambda target: send(target.grpc_port, PREFACE + frame(SETTINGS), *frames)


def rapid_reset(target: Target) -> None:
    """CVE-2023-44487: requests that are cancelled as soon as they were sent."""
    streams = range(1, 400, 2)
    own = [call(message(request()), stream=each) + frame(RST_STREAM, bytes(4), stream=each) for each in streams]
    h2(b"".join(own))(target)


# gRPC by its own library


@cache
def channel(address: str) -> object:
    import grpc

    return grpc.insecure_channel(address)


def request(**more: object) -> bytes:
    """Return a request to the model of numbers, as protobuf writes it."""
    from tritonclient.grpc import service_pb2 as pb

    own = {"model_name": NUMBERS, "raw_input_contents": [struct.pack("<q", 1)]}
    own |= {"inputs": [{"name": "x", "datatype": "INT64", "shape": [1]}]} | more
    return pb.ModelInferRequest(**own).SerializeToString()


def grpc_call(method: str, payload: Callable[[], bytes] = bytes, **options: object) -> Abuse:
    """Call a method of Triton's service with bytes, whatever they are."""

    def abuse(target: Target) -> None:
        import grpc

        path = f"/inference.GRPCInferenceService/{method}"
        asked = channel(target.grpc).unary_unary(path, request_serializer=bytes, response_deserializer=bytes)
        with contextlib.suppress(grpc.RpcError):
            asked(payload(), **({"timeout": PATIENCE} | options))

    return abuse


def compressed(name: str) -> Abuse:
    def abuse(target: Target) -> None:
        import grpc

        grpc_call("ModelInfer", request, compression=getattr(grpc.Compression, name))(target)

    return abuse


def cancelled(target: Target) -> None:
    """Let 20 clients cancel their calls as soon as they were sent."""
    asked = channel(target.grpc).unary_unary(CALL, request_serializer=bytes, response_deserializer=bytes)
    calls = [asked.future(request()) for _ in range(20)]
    for each in calls:
        each.cancel()


def left_stream(target: Target) -> None:
    """Begin a stream of requests, and never read its answers."""
    path = CALL.replace("ModelInfer", "ModelStreamInfer")
    stream = channel(target.grpc).stream_stream(path, request_serializer=bytes, response_deserializer=bytes)
    stream(iter([request()] * 10), timeout=PATIENCE)


def region(method: str, /, **fields: object) -> Abuse:
    """Register a region of shared memory, as a protobuf message."""

    def payload() -> bytes:
        from tritonclient.grpc import service_pb2 as pb

        return getattr(pb, f"{method}Request")(**fields).SerializeToString()

    return grpc_call(method, payload)


def chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))
