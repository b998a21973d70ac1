"""The proxy of docs/serving.md before a real Triton server: what would end the server does not reach it."""

import contextlib
import gzip
import json
import queue
import socket
import time

import front
import pytest
import same
import strangers
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


@pytest.mark.parametrize(
    "administer",
    [
        lambda client: client.unload_model("same"),
        lambda client: client.get_model_repository_index(),
        lambda client: client.register_system_shared_memory("region", "/region", 8),
        lambda client: client.get_cuda_shared_memory_status(),
        lambda client: client.update_trace_settings(settings={"trace_rate": "1"}),
        lambda client: client.update_log_settings({"log_verbose_level": 9}),
    ],
    ids=["unload", "index", "shared memory", "memory of a GPU", "traces", "log"],
)
def test_nobody_administers_the_server_by_grpc(started, administer):
    with grpc.InferenceServerClient(started.grpc) as client:
        with pytest.raises(InferenceServerException, match="404") as refused:
            administer(client)
        assert refused.value.status() == "StatusCode.UNIMPLEMENTED"
        assert client.is_model_ready("same")


def test_clients_read_the_server_and_its_models_by_grpc(started):
    with grpc.InferenceServerClient(started.grpc) as client:
        assert client.is_server_live()
        assert client.get_server_metadata().version
        assert client.get_model_metadata("same").name == client.get_model_config("same").config.name == "same"
        assert client.get_inference_statistics("same").model_stats[0].name == "same"


@pytest.mark.whole("it waits for longer than the time in which a body must come")
def test_a_stream_of_grpc_may_be_silent(started):
    answers = queue.SimpleQueue()
    with grpc.InferenceServerClient(started.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for number in (1, 2):
            client.async_stream_infer("same", same.rows([number]))
            result, error = answers.get(timeout=30)
            assert error is None
            assert result.as_numpy("y").tolist() == [number]
            time.sleep(12 if number == 1 else 0)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_message_is_refused_as_a_client_of_grpc_understands_it(started, encoding):
    with grpc.InferenceServerClient(started.grpc) as client:
        with pytest.raises(InferenceServerException, match="415: compressed messages are not taken") as refused:
            client.infer("same", same.rows([1]), compression_algorithm=encoding)
        assert refused.value.status() == "StatusCode.UNIMPLEMENTED"
        assert client.infer("same", same.rows([2])).as_numpy("y").tolist() == [2]


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


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "x-gzip", "br", "identity, gzip", "gzip, identity"])
def test_a_compressed_body_is_refused_because_its_limit_would_count_too_little(proxy, server, encoding):
    body = gzip.compress(b"[" * 300_000)
    assert len(body) < 1_000
    assert ask(proxy, "POST", INFER, body, {"Content-Encoding": encoding}) == 415
    assert ask(proxy, "POST", INFER, row([4]), {"Content-Encoding": "identity"}) == 200
    assert server.ended() is None


def test_triton_unpacks_nothing_whatever_a_second_header_says(proxy, server):
    body = gzip.compress(row([4]).encode())
    for encodings in (("identity", "gzip"), ("gzip", "identity")):
        headers = [f"Content-Encoding: {each}" for each in encodings]
        with socket.create_connection(("127.0.0.1", proxy), timeout=30) as connection:
            connection.sendall(strangers.post(body, *headers, path=INFER))
            status = int(connection.recv(12).split()[1])
        assert status in (415, 500)  # 500: Triton took the packed bytes for JSON
    assert server.ended() is None


def test_more_requests_at_once_than_the_limit_are_refused(server, tmp_path):
    """Of one address, and of all: a client at another address is answered until all together are too many."""
    with front.nginx(server, tmp_path, of_all=12, of_one_client=4) as (port, _, _), contextlib.ExitStack() as stack:

        def wait(number, address):
            for _ in range(number):  # the body is still to come, so the request is in work
                source = (address, 0)
                waiting = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=source)
                stack.enter_context(waiting).sendall(strangers.head(INFER, "Content-Length: 9"))

        def status(address):
            return statuses(port, [address] * 3)[-1]

        wait(4, "127.0.0.2")
        assert [status("127.0.0.2"), status("127.0.0.3")] == [503, 200]
        wait(4, "127.0.0.3")
        wait(4, "127.0.0.4")
        assert status("127.0.0.5") == 503
        stack.close()
        for _ in range(100):
            if status("127.0.0.5") == 200:
                return
            time.sleep(0.1)
    raise AssertionError("nginx refuses requests although none is in work")


def statuses(port, addresses):
    """Return the status of a request of each address."""
    return [ask(port, "POST", INFER, row([4]), source=address) for address in addresses]


ADMINISTERS = [
    "/v2/repository/index", "/v2/repository/models/same/unload", "/v2/systemsharedmemory/region/a/register",
    "/v2/systemsharedmemory/status", "/v2/cudasharedmemory/region/a/register", "/v2/trace/setting", "/v2/logging",
    "/v2/models/same/trace/setting", "/v2/models/same/versions/1/trace/setting", "//v2//logging", "/v2/%6cogging",
    "/v2/models/../logging", "/v2/models/%2e%2e/logging", "/v2/models/same/ready/../../../logging", "/v2/logging/.",
    "/v2/models/same/ready/..%2f..%2f..%2flogging", "/v2/logging?/v2/models/same/ready", "/v2/models/same/ready%0a",
    "/v2/models/same%2ftrace/setting", "/metrics", "/",
]  # fmt: skip


@pytest.mark.parametrize("path", ADMINISTERS)
def test_nobody_administers_the_server_through_it(proxy, path):
    assert [ask(proxy, "POST", path, "{}"), ask(proxy, "GET", path)] == [404, 404]
    assert ask(proxy, "GET", "/v2/health/ready") == 200


@pytest.mark.parametrize(
    "path",
    ["", "/health/live", "/health/ready", *(f"/models/same{version}{end}" for version in ("", "/versions/1")
                                            for end in ("", "/ready", "/config", "/stats"))],
)  # fmt: skip
def test_clients_read_the_server_and_its_models(proxy, path):
    assert ask(proxy, "GET", f"/v2{path}") == 200


@pytest.mark.parametrize("path", [INFER, "/v2/models/same/versions/1/infer"])
def test_clients_call_a_model_and_its_version(proxy, path):
    assert ask(proxy, "POST", path, row([4])) == 200
    assert ask(proxy, "PUT", path, row([4])) == 403
