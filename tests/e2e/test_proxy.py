"""The proxy of docs/serving.md before a real Triton server: what would end the server does not reach it."""

import contextlib
import json
import re
import socket
import time

import front
import pytest
import triton_server
from front import ask

MODEL = """
import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        given = [triton.get_input_tensor_by_name(each, "x").as_numpy() for each in requests]
        return [triton.InferenceResponse([triton.Tensor("y", each)]) for each in given]
"""
CONFIG = """
name: "same" backend: "python" max_batch_size: 0
input { name: "x" data_type: TYPE_INT64 dims: [-1] }
output { name: "y" data_type: TYPE_INT64 dims: [-1] }
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(environment, tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    (repository / "same" / "1").mkdir(parents=True)
    (repository / "same" / "config.pbtxt").write_text(CONFIG)
    (repository / "same" / "1" / "model.py").write_text(MODEL)
    with triton_server.serving(repository, repository, environment) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(server, tmp_path_factory):
    with front.nginx(server, tmp_path_factory.mktemp("nginx")) as (port, _):
        yield port


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
    [most] = map(int, re.findall(r"limit_conn all (\d+);", front.PAGE.read_text()))
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
