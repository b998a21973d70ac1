"""Stream wires: send many encoded requests to a streaming model at once, and note when each piece comes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.client import encoded, failures
from engine.client.address import Address
from engine.client.wires import GrpcWire, HttpWire, WireError

_DATA = b"data:"
_OK = b"200"


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
                body = await reader.read(int(encoded.head_field(head, b"content-length") or -1))
                raise WireError(failures.error_message(body) or head.split(b"\r\n", 1)[0].decode(errors="replace"))
            return await _collected(_events(reader))
        except (OSError, EOFError, ValueError) as error:
            raise WireError(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        finally:
            writer.close()  # one connection for each stream, as clients of server-sent events have it


class GrpcStreamWire(GrpcWire):
    """gRPC channels to a streaming model; each request is a stream of its own."""

    def __init__(self, address: Address, *, count_tokens: bool, at_once: int) -> None:
        super().__init__(address, count_tokens=count_tokens, at_once=at_once)
        self._streams: list[Any] = [
            channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer") for channel in self.channels
        ]
        self._turn = 0

    async def stream(self, request: bytes) -> StreamedAnswer:
        """Send a ModelInferRequest and wait for the whole answer. Raises WireError, also without any piece."""
        from grpc.aio import AioRpcError  # type: ignore[import-untyped]

        self._turn = (self._turn + 1) % len(self._streams)
        call = self._streams[self._turn]()
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
            yield encoded.tokens_of(message.infer_response)
