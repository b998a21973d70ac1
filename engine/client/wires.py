"""Wires: send many encoded requests at once over HTTP or gRPC, in one event loop."""

from __future__ import annotations

import asyncio
import importlib
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from engine.client import encoded, failures
from engine.client.address import Address, Protocol

_REQUESTS_PER_CONNECTION = 8
"""The concurrent requests that share one gRPC connection, for which client and server each use one thread."""
_READ_LIMIT = 1 << 20
"""Bytes of the buffer of an HTTP connection, and so the longest head of a response."""
_DATA = b"data:"
_OK = b"200"


class WireError(Exception):
    """The error, in words for users, of a request that got no response, or whose response is an error."""


def prepare(protocol: Protocol, decodes: bool) -> None:  # noqa: FBT001 - both come as one message
    """Import the modules that sending requests needs, so that no request waits for an import."""
    modules = ["grpc.aio"] if protocol == "grpc" else []
    if decodes:
        modules.append(f"tritonclient.{protocol}")
    for name in modules:
        importlib.import_module(name)


class HttpWire:
    """HTTP connections that stay open, one for each concurrent request."""

    def __init__(self, address: Address, *, count_tokens: bool) -> None:
        self._address, self._count = address, count_tokens
        self._tls = ssl.create_default_context() if address.tls else None
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(self, request: bytes) -> int:
        """Send an HTTP request; return the number of generated tokens, 0 without `count_tokens`. Raises WireError."""
        try:
            connection = self._free.pop() if self._free else await self.connection()
            try:
                head, body = await _exchange(*connection, request)
            except BaseException:
                connection[1].close()
                raise
        except (OSError, EOFError, ValueError) as error:
            raise WireError(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        if encoded.head_field(head, b"connection").lower() == b"close":
            connection[1].close()
        else:
            self._free.append(connection)
        _raise_refusal(head, body)
        return encoded.tokens_of_http(head, body) if self._count else 0

    async def connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection. Raises OSError."""
        return await asyncio.open_connection(self._address.host, self._address.port, ssl=self._tls, limit=_READ_LIMIT)

    async def close(self) -> None:
        """Close every connection."""
        for _, writer in self._free:
            writer.close()


class GrpcWire:
    """gRPC channels, each shared by several requests at once."""

    def __init__(self, address: Address, *, count_tokens: bool, at_once: int) -> None:
        from grpc import aio, ssl_channel_credentials  # type: ignore[import-untyped]

        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1),
                   ("grpc.max_send_message_length", -1)]  # fmt: skip
        count = max(1, -(-at_once // _REQUESTS_PER_CONNECTION))
        self.channels = [
            aio.secure_channel(address.place, ssl_channel_credentials(), options=options)
            if address.tls
            else aio.insecure_channel(address.place, options=options)
            for _ in range(count)
        ]
        self._calls: Iterator[Any] = cycle([self.call(channel) for channel in self.channels])
        self._count = count_tokens

    def call(self, channel: Any) -> Any:
        """Return what sends a request over a channel."""
        return channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")

    async def send(self, request: bytes) -> int:
        """Send a ModelInferRequest; return the generated tokens, 0 without `count_tokens`. Raises WireError."""
        from grpc.aio import AioRpcError  # type: ignore[import-untyped]

        try:
            body = await next(self._calls)(request)
        except AioRpcError as error:
            raise WireError(f"{error.code().name}: {error.details()}") from error
        if not self._count:
            return 0
        from tritonclient.grpc import service_pb2

        return encoded.tokens_of_grpc(service_pb2.ModelInferResponse.FromString(body))

    async def close(self) -> None:
        """Close every channel."""
        for channel in self.channels:
            await channel.close(None)


def _raise_refusal(head: bytes, body: bytes) -> None:
    """Raise WireError for a response that is an error, with the server's message or else the status line."""
    if head.split(b" ", 2)[1] != _OK:
        raise WireError(failures.error_message(body) or head.split(b"\r\n", 1)[0].decode(errors="replace"))


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[bytes, bytes]:
    writer.write(request)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    if encoded.head_field(head, b"transfer-encoding").lower() == b"chunked":
        return head, await _chunks(reader)
    return head, await reader.readexactly(int(encoded.head_field(head, b"content-length") or 0))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """Return the body of an HTTP response that is sent in chunks (RFC 9112, 7.1)."""
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return body


@dataclass(frozen=True)
class StreamedAnswer:
    """An answer that came in pieces: the number of its tokens, and a reading of time.monotonic for each piece."""

    tokens: int
    moments: Sequence[float]


class HttpStreamWire(HttpWire):
    """HTTP connections to a streaming model, which sends each piece as a server-sent event."""

    async def stream(self, request: bytes) -> StreamedAnswer:
        """Send a request and wait for the whole answer. Raises WireError, also for an answer without any piece."""
        reader, writer = await self.connection()
        try:
            writer.write(request)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            if head.split(b" ", 2)[1] != _OK:
                _raise_refusal(head, await reader.read(int(encoded.head_field(head, b"content-length") or -1)))
            return await _collected(_events(reader))
        except (OSError, EOFError, ValueError) as error:
            raise WireError(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        finally:
            writer.close()  # one connection for each stream, as clients of server-sent events have it


class GrpcStreamWire(GrpcWire):
    """gRPC channels to a streaming model; each request is a stream of its own."""

    def call(self, channel: Any) -> Any:
        """Return what begins a stream over a channel."""
        return channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")

    async def stream(self, request: bytes) -> StreamedAnswer:
        """Send a ModelInferRequest and wait for the whole answer. Raises WireError, also without any piece."""
        from grpc.aio import AioRpcError

        call = next(self._calls)()
        try:
            await call.write(request)
            await call.done_writing()
            return await _collected(_messages(call))
        except AioRpcError as error:
            raise WireError(f"{error.code().name}: {error.details()}") from error
        finally:
            call.cancel()


async def _collected(pieces: AsyncIterator[int]) -> StreamedAnswer:
    """Return the answer whose pieces come one by one, each as the number of its tokens."""
    tokens, moments = 0, []
    async for count in pieces:
        tokens += count
        moments.append(time.monotonic())
    if not moments:
        raise WireError("an answer without any piece")
    return StreamedAnswer(tokens, moments)


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[int]:
    """Yield the number of tokens in each server-sent event of a response in chunks."""
    rest = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        rest += (await reader.readexactly(size + 2))[:-2]
        *lines, rest = rest.split(b"\n")
        for line in lines:
            if line.startswith(_DATA):
                yield _tokens_of_event(json.loads(line[len(_DATA) :]))


def _tokens_of_event(event: Any) -> int:
    if "error" in event:
        raise WireError(str(event["error"]))
    token_ids = event.get(encoded.TOKENS, [])
    return sum(each >= 0 for each in (token_ids if isinstance(token_ids, list) else [token_ids]))


async def _messages(call: Any) -> AsyncIterator[int]:
    """Yield the number of tokens in each message of a gRPC stream; the last message of a stream may hold none."""
    from tritonclient.grpc import service_pb2

    async for body in call:
        message = service_pb2.ModelStreamInferResponse.FromString(body)
        if message.error_message:
            raise WireError(message.error_message)
        if message.infer_response.outputs:
            yield encoded.tokens_of_grpc(message.infer_response)
