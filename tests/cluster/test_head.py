"""What is no head of a cluster, or a dead one, ends with one error before Ray's own connection waits for it."""

import socket
import threading
import time
from concurrent import futures
from contextlib import contextmanager

import pytest
import ray_cluster
from gpu_project import project_in
from program import Program

from engine.cluster.head import ClusterHead
from engine.errors import UsageError


@pytest.fixture
def laptop(tmp_path):
    ray_cluster.program()
    program = Program(project_in(tmp_path / "laptop"), anew=True)
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        program.environment.pop(name, None)
    program.environment |= {"HOME": str(tmp_path), "RAY_TMPDIR": str(tmp_path)}
    return program


@contextmanager
def silent():
    """Listen on a port, and answer nothing, as a head under SIGSTOP does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@contextmanager
def serving(answer):
    """Serve gRPC on a port: `answer` gets the name of each call, and its context."""
    import grpc

    class Answers(grpc.ServerInterceptor):
        def intercept_service(self, continuation, details):
            return grpc.unary_unary_rpc_method_handler(lambda _request, context: answer(details.method, context))

    server = grpc.server(futures.ThreadPoolExecutor(2), interceptors=[Answers()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None)


@contextmanager
def without_gcs():
    """Answer pings as a Ray client server, and nothing else, as one does whose GCS is under SIGSTOP."""
    is_over = threading.Event()

    def answer(method, _context):
        if not method.endswith("/ClusterInfo"):
            is_over.wait()
        return b""

    with serving(answer) as port:
        try:
            yield port
        finally:
            is_over.set()


@contextmanager
def asking(token):
    """Answer as a Ray client server that asks for a token."""
    import grpc

    def answer(_method, context):
        if ("authorization", f"Bearer {token}") not in [*context.invocation_metadata()]:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "it is none after all")

    with serving(answer) as port:
        yield port


@pytest.mark.parametrize("where", ["ray://nowhere", "ray://head:99999", "ray://head:port", "ray://:10001"])
def test_an_address_without_a_host_and_a_port_is_refused(where):
    with pytest.raises(UsageError, match=f"{where} is no address of a cluster"):
        ClusterHead.at(where)


@pytest.mark.parametrize(("where", "head"), [("auto", silent), ("ray://", silent), ("ray://", without_gcs)])
def test_a_head_that_is_silent_ends_a_build_within_half_a_minute(laptop, where, head):
    with head() as port:
        laptop.environment["RAY_ADDRESS"] = f"127.0.0.1:{port}"
        began = time.monotonic()
        refused = laptop("doctor", "--on", f"ray://127.0.0.1:{port}" if where == "ray://" else where, expect=1).stderr
    assert "no answer within 10 s" in refused
    assert refused.count("error:") == 1
    assert time.monotonic() - began < 30


def test_nobody_at_the_address_of_a_head_ends_a_build_at_once(laptop):
    assert "no cluster answers at ray://127.0.0.1:1" in laptop("doctor", "--on", "ray://127.0.0.1:1", expect=1).stderr
    laptop.environment["RAY_ADDRESS"] = "127.0.0.1:1"
    assert "Connection refused" in laptop("doctor", "--on", "auto", expect=1).stderr


def test_the_address_that_the_last_head_of_this_machine_has_left_is_one_of_a_dead_head(laptop, tmp_path):
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1")
    refused = laptop("doctor", "--on", "auto", expect=1).stderr
    # Another cluster of this machine, of another test, is found first.
    assert "no cluster answers at 127.0.0.1:1" in refused or "asks for a token" in refused


def test_a_head_is_given_a_token_if_it_asks_for_one_and_an_error_says_what_is_wrong_with_it(laptop):
    with asking("a" * 64) as port:
        where = ("doctor", "--on", f"ray://127.0.0.1:{port}")
        assert "asks for a token\n  this machine has none" in laptop(*where, expect=1).stderr
        laptop.environment["RAY_AUTH_TOKEN"] = "b" * 64
        assert "has another token than this machine" in laptop(*where, expect=1).stderr
        laptop.environment["RAY_AUTH_TOKEN"] = "a" * 64
        assert "what answers at ray://" in laptop(*where, expect=1).stderr
        laptop.environment["RAY_AUTH_MODE"] = "disabled"
        assert "what answers at ray://" in laptop(*where, expect=1).stderr


def test_a_token_that_cannot_be_sent_or_read_is_named_with_its_place(laptop, tmp_path):
    with asking("a" * 64) as port:
        where = ("doctor", "--on", f"ray://127.0.0.1:{port}")
        laptop.environment["RAY_AUTH_TOKEN_PATH"] = str(tmp_path / "token")
        for raw, reason in (
            (b"", f"RAY_AUTH_TOKEN_PATH is set but file cannot be opened or is empty: {tmp_path / 'token'}\n"),
            (b"\xff\xfe\x80", "the token of RAY_AUTH_TOKEN_PATH has a byte that no token has"),
            ("ü".encode(), "the token of RAY_AUTH_TOKEN_PATH has a byte that no token has"),
        ):
            (tmp_path / "token").write_bytes(raw)
            assert reason in laptop(*where, expect=1).stderr
        laptop.environment["RAY_AUTH_TOKEN"] = "a\nb"
        assert "the token of RAY_AUTH_TOKEN has a byte that no token has" in laptop(*where, expect=1).stderr


def test_an_address_of_the_environment_with_the_wrong_port_is_told_the_right_one(laptop):
    laptop.environment["RAY_AUTH_TOKEN"] = "a" * 64
    with asking("a" * 64) as port:
        laptop.environment["RAY_ADDRESS"] = f"127.0.0.1:{port}"
        refused = laptop("doctor", "--on", "auto", expect=1).stderr
    assert "is no head" in refused
    assert "the port is the one of `--port` (6379), not of `--ray-client-server-port` (10001)" in refused
    laptop.environment["RAY_ADDRESS"] = "nowhere"
    assert "hint: RAY_ADDRESS=head:6379 names" in laptop("doctor", "--on", "auto", expect=2).stderr
