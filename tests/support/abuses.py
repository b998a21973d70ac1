"""What a stranger does to a server: a table of abuses, each tried again and again by a process of its own.

Run as a program, with the name of an abuse, the port for HTTP and the address for gRPC: it begins paused, goes on when
it gets SIGCONT, and prints how often it tried when it gets SIGTERM.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import os
import signal
import socket
import struct
import sys
import time
import zlib
from collections.abc import Mapping
from functools import partial

from strangers import (
    CONTINUATION,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    MODEL_BEHIND,
    NUMBERS,
    PING,
    PREFACE,
    SETTINGS,
    TEXT_MODEL,
    Abuse,
    Target,
    asked,
    call,
    cancelled,
    chunks,
    coded,
    compressed,
    fields,
    frame,
    get,
    grpc_call,
    h2,
    hang_up,
    head,
    http,
    ids,
    infer,
    left_stream,
    many,
    message,
    post,
    rapid_reset,
    region,
    request,
    reset,
    send,
    tensors,
    text,
    to,
    x,
)

SHARED = {"shared_memory_region": "r", "shared_memory_byte_size": 1 << 40, "shared_memory_offset": 1 << 62}
WHOLE_TEXT = post(text(), path=infer(TEXT_MODEL))
GZIP = "Content-Encoding: gzip"
LONG = "Inference-Header-Content-Length"

MEMORY = "/v2/systemsharedmemory"
OF_FILE = b'{"parameters":{"file:1/model.py":"aQ=="}}'
CHUNKED = "Transfer-Encoding: chunked"
DEEP = b"[" * 300_000
ZEROS = b'{"inputs":[' + b" " * 40_000_000

ABUSES: Mapping[str, Abuse] = {
    # Encodings
    "gzip of JSON nested deep": coded(gzip.compress(DEEP), GZIP),
    "deflate of JSON nested deep": coded(zlib.compress(DEEP), "Content-Encoding: deflate"),
    "gzip of 40 MB": coded(gzip.compress(ZEROS), GZIP),
    "gzip in capitals": coded(gzip.compress(DEEP), "CONTENT-ENCODING: GZIP"),
    "x-gzip": coded(gzip.compress(DEEP), "Content-Encoding: x-gzip"),
    "an encoding that nobody knows": coded(gzip.compress(DEEP), "Content-Encoding: br, zstd"),
    "identity, then gzip": coded(gzip.compress(DEEP), "Content-Encoding: identity, gzip"),
    "two encodings, identity first": coded(gzip.compress(DEEP), "Content-Encoding: identity", GZIP),
    "two encodings, gzip first": coded(gzip.compress(DEEP), GZIP, "Content-Encoding: identity"),
    "gzip twice": coded(gzip.compress(gzip.compress(DEEP)), "Content-Encoding: gzip, gzip"),
    "an underscore in the name": coded(gzip.compress(DEEP), "Content_Encoding: gzip"),
    "a space before the colon": coded(gzip.compress(DEEP), "Content-Encoding : gzip"),
    "a value on a line of its own": coded(gzip.compress(DEEP), "Content-Encoding:\r\n gzip"),
    "gzip that claims to be none": coded(gzip.compress(DEEP), "Content-Encoding: identity"),
    "gzip of chunks": http(head(infer(NUMBERS), CHUNKED, GZIP) + chunks(gzip.compress(DEEP))),
    "a transfer that is coded": http(head(infer(NUMBERS), "Transfer-Encoding: gzip, chunked") + chunks(DEEP[:999])),
    "an encoding of the answer that no number weighs": http(post(tensors(x()), "Accept-Encoding: gzip;q=1e999")),
    "gRPC, gzip": compressed("Gzip"),
    "gRPC, deflate": compressed("Deflate"),
    "gRPC, an encoding that nobody knows": h2(call(message(DEEP[:9], compressed=1), grpc_encoding="snappy")),
    "gRPC, compressed without an encoding": h2(call(message(gzip.compress(DEEP), compressed=1))),
    "gRPC, two encodings": h2(call(message(gzip.compress(DEEP), compressed=1), grpc_encoding="identity, gzip")),
    # Half requests
    "headers without an end": http(b"POST /v2 HTTP/1.1\r\nHost: a\r\nA: "),
    "a body that never comes": http(head(infer(NUMBERS), "Content-Length: 90000") + b"{"),
    "chunks without an end": http(head(infer(NUMBERS), CHUNKED) + b'5\r\n{"a":'),
    "a body byte by byte": http(head(infer(NUMBERS), "Content-Length: 9"), *[b"["] * 8, pause=0.04),
    "600 connections that send nothing": many(600, b""),
    "600 half headers": many(600, b"GET /v2 HTTP/1.1\r\nHost: a\r\nB"),
    "100 half bodies": many(100, head(infer(NUMBERS), "Content-Length: 90000") + b"{"),
    "a request that promises to wait": http(head(infer(NUMBERS), "Content-Length: 9", "Expect: 100-continue")),
    "more bytes than promised": http(post(tensors(x())) + b"\0" * 60_000),
    "a chunk of an impossible length": http(head(infer(NUMBERS), CHUNKED) + b"ffffffffffffffff1\r\n{"),
    "two lengths": http(head(infer(NUMBERS), "Content-Length: 5", "Content-Length: 9") + b"[[[[[[[[["),
    "a length and chunks": http(head(infer(NUMBERS), "Content-Length: 5", CHUNKED) + chunks(b"[")),
    "gRPC, a message of 4 GB that never comes": h2(call(message(b"", length=2**32 - 1))),
    "gRPC, headers without an end": h2(frame(HEADERS, fields(), stream=1)),
    "gRPC, a call without a body": h2(frame(HEADERS, fields(), flags=END_HEADERS | END_STREAM, stream=1)),
    # Hang-ups
    "20 clients hang up": hang_up(20, WHOLE_TEXT, socket.socket.close),
    "20 clients reset": hang_up(20, WHOLE_TEXT, reset),
    "20 clients send their end, and wait": hang_up(20, WHOLE_TEXT, lambda each: each.shutdown(socket.SHUT_WR)),
    "20 clients reset in the middle": hang_up(20, WHOLE_TEXT[:-50], reset),
    "gRPC, a stream that nobody reads": left_stream,
    # Levels of the protocols
    "HTTP/0.9": http(b"GET /v2/health/ready\r\n"),
    "HTTP/2 at the port for HTTP": http(PREFACE + frame(SETTINGS)),
    "TLS at the port for HTTP": http(bytes.fromhex("1603010200010001fc0303") + os.urandom(500)),
    "an upgrade to HTTP/2": http(head("/v2", "Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: ")),
    "HTTP/1.1 at the port for gRPC": lambda target: send(target.grpc_port, post(b"{}")),
    "gRPC, 1,000 settings": h2(frame(SETTINGS) * 1_000),
    "gRPC, 5,000 pings": h2(frame(PING, bytes(8)) * 5_000),
    "gRPC, headers that go on and on": h2(frame(HEADERS, fields(), stream=1) + frame(CONTINUATION, stream=1) * 999),
    "gRPC, a frame of an unknown kind": h2(frame(99, os.urandom(99), stream=7)),
    "gRPC, a path outside": h2(call(b"", **{":path": "/../../etc/passwd"})),
    "a path of 20 kB": get("/v2/models/" + "a" * 20_000),
    "1,000 headers": http(head("/v2", *[f"A{each}: {each}" for each in range(1_000)], method="GET")),
    "a null in the path": get("/v2/models/same\0/ready"),
    "an unknown method": http(head(infer(NUMBERS), "Content-Length: 0", method="PROPFIND")),
    "a tunnel": http(head("127.0.0.1:22", method="CONNECT")),
    # Settings
    "trace settings": to("/v2/trace/setting", b'{"trace_level":["TIMESTAMPS"],"trace_rate":"1"}'),
    "trace settings of a model": to(f"/v2/models/{NUMBERS}/trace/setting", b'{"trace_file":"/tmp/stolen"}'),
    "logging": to("/v2/logging", b'{"log_verbose_level":9,"log_file":"/tmp/stolen"}'),
    "logging behind dots": to("/v2/models/../logging"),
    "logging behind coded dots": to("/v2/models/%2e%2e/logging"),
    "logging behind two slashes": to("//v2//logging"),
    "logging in coded letters": to("/v2/%6c%6fgging"),
    "a model that is unloaded": to(f"/v2/repository/models/{NUMBERS}/unload"),
    "a model that is loaded from a file of the client": to("/v2/repository/models/same/load", OF_FILE),
    "gRPC, trace settings": grpc_call("TraceSetting"),
    "gRPC, log settings": grpc_call("LogSettings"),
    "gRPC, a model that is unloaded": grpc_call("RepositoryModelUnload", lambda: b"\x12\x04same"),
    "gRPC, the index, without an end": grpc_call("RepositoryIndex"),
    # Shared memory
    "a region of shared memory": to(MEMORY + "/region/r/register", b'{"key":"/r","offset":0,"byte_size":8}'),
    "a region of a GPU": to("/v2/cudasharedmemory/region/r/register", b'{"raw_handle":{"b64":""},"byte_size":8}'),
    "all regions, forgotten": to(MEMORY + "/unregister"),
    "gRPC, a region of shared memory": region("SystemSharedMemoryRegister", name="r", key="/r", byte_size=8),
    "gRPC, a region of a GPU": region("CudaSharedMemoryRegister", name="r", raw_handle=bytes(64), byte_size=8),
    "an input in a region": asked(x(parameters=SHARED)),
    "an output in a region": asked(x(), outputs=[{"name": "y", "parameters": SHARED}]),
    # Requests
    "JSON as deep as the limit": to(infer(NUMBERS), DEEP[: 96 * 1024]),
    "objects as deep as the limit": to(infer(NUMBERS), b'{"a":' * (96 * 1024 // 5)),
    "a shape that overflows": asked(x(shape=[1 << 62, 4])),
    "a shape below zero": asked(x(shape=[-1])),
    "a number of 90,000 digits": to(infer(NUMBERS), tensors(x()).replace(b"[1]", b"[" + b"9" * 90_000 + b"]")),
    "binary data larger than all memory": asked(x(data=[], parameters={"binary_data_size": 1 << 62})),
    "a JSON longer than the body": http(post(tensors(x()), f"{LONG}: 99999999")),
    "a JSON of less than no length": http(post(tensors(x()), f"{LONG}: -1")),
    "an id of a request of 60 kB": asked(x(), id="a" * 60_000),
    "a sequence that never ends": asked(x(), parameters={"sequence_id": 1, "sequence_start": True}),
    "classes without an end": asked(x(), outputs=[{"name": "y", "parameters": {"classification": 1 << 40}}]),
    "ids beyond the vocabulary": to(infer(MODEL_BEHIND), ids(10**9, -(10**9))),
    "a sequence of 10,000 tokens": to(infer(MODEL_BEHIND), ids(*[1] * 10_000)),
    "gRPC, no protobuf": grpc_call("ModelInfer", lambda: os.urandom(1_000)),
    "gRPC, contents of another size": grpc_call("ModelInfer", partial(request, raw_input_contents=[b"1"] * 9)),
    "gRPC, a shape that overflows": grpc_call(
        "ModelInfer", partial(request, inputs=[{"name": "x", "datatype": "INT64", "shape": [1 << 62, 4]}])
    ),
}  # fmt: skip


CANCELLED: Mapping[str, Abuse] = {
    "20 clients cancel": cancelled,
    "a deadline of no time": grpc_call("ModelInfer", request, timeout=0.0001),
    "rapid reset": rapid_reset,
    "a client that takes no answer": h2(frame(SETTINGS, struct.pack(">HI", 4, 0)), call(message(request()))),
}
"""Calls that end a Triton before 25.06, whose image lacks the pull requests 7840 and 8078 of its server."""


def main(name: str, http_port: str, grpc: str) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with the tests, also where it is paused
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
    target, tried = Target(int(http_port), grpc), 0
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    while not ended:
        with contextlib.suppress(OSError):
            (ABUSES | CANCELLED)[name](target)
        tried += 1
        time.sleep(0.01)
    print(tried, flush=True)
    os._exit(0)  # a library's threads may wait for answers


if __name__ == "__main__":
    main(*sys.argv[1:])
