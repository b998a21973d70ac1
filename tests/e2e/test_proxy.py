"""The proxy of docs/serving.md before a real Triton server: what would end the server does not reach it."""

import contextlib
import json
import re
import socket
import time

import front
import pytest
import same
import triton_server
from front import ask
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(environment, tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    same.write(repository)
    with triton_server.serving(environment, repository) as server:
        yield server


@pytest.fixture(scope="module")
def started(server, tmp_path_factory):
    with front.nginx(server, tmp_path_factory.mktemp("nginx")) as started:
        yield started


@pytest.fixture(scope="module")
def proxy(started):
    return started.port


def test_grpc_passes_and_what_is_too_large_does_not(started):
    with grpc.InferenceServerClient(started.grpc) as client:
        assert client.is_server_ready()
        assert client.infer("same", same.rows([1, 2])).as_numpy("y").tolist() == [1, 2]
        with pytest.raises(InferenceServerException, match="413"):
            client.infer("same", same.rows([1] * 1_000_000))
        assert client.infer("same", same.rows([3])).as_numpy("y").tolist() == [3]


def test_nobody_administers_the_server_by_grpc(started):
    with grpc.InferenceServerClient(started.grpc) as client:
        for administer in (
            lambda: client.unload_model("same"),
            lambda: client.register_system_shared_memory("region", "/region", 8),
        ):
            with pytest.raises(InferenceServerException, match="404"):
                administer()
        assert client.is_model_ready("same")


def row(numbers):
    tensor = {"name": "x", "shape": [len(numbers)], "datatype": "INT64", "data": numbers}
    return json.dumps({"inputs": [tensor]})


INFER = "/v2/models/same/infer"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (row([1, 2, 3]), 200),
        (row([1] * 30_000), 200),
        ("[" * 96 * 1024, 500),
        ("[" * 200_000, 413),
        (b"\0" * 10_000_000, 413),
    ],
    ids=["small", "90 kB", "nested as deep as the limit allows", "nested deeper", "10 MB"],
)
def test_what_would_end_the_server_does_not_reach_it(proxy, server, body, status):
    assert ask(proxy, "POST", INFER, body) == status
    assert ask(proxy, "POST", INFER, row([4])) == 200
    assert server.ended() is None


def test_more_requests_at_once_than_the_limit_are_refused(proxy):
    [most] = {int(number) for number in re.findall(r"limit_conn all (\d+);", proxy_text.nginx())}
    with contextlib.ExitStack() as stack:
        for _ in range(most):  # the body is still to come, so the request is in work
            waiting = stack.enter_context(socket.create_connection(("127.0.0.1", proxy), timeout=30))
            waiting.sendall(f"POST {INFER} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n".encode())
        statuses = [ask(proxy, "POST", INFER, row([4])) for _ in range(3)]
    assert statuses[-1] == 503
    for _ in range(100):
        if ask(proxy, "POST", INFER, row([4])) == 200:
            return
        time.sleep(0.1)
    raise AssertionError("nginx refuses requests although none is in work")


@pytest.mark.parametrize("path", ["/v2/repository/models/same/unload", "/v2/systemsharedmemory/region/a/register"])
def test_nobody_administers_the_server_through_it(proxy, path):
    assert ask(proxy, "POST", path, "{}") == 404
    assert ask(proxy, "GET", "/v2/health/ready") == 200
