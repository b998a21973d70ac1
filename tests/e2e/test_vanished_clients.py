"""Clients that hang up before their answers: how much of their work a real Triton does, and how long others wait."""

import contextlib
import json
import shutil
import socket
import time
from pathlib import Path

import front
import pytest
import same
import strangers
import triton_server
from tritonclient import grpc

from engine.kit.triton import served

pytestmark = pytest.mark.slow

WORK = """
import time


class Work:
    def __init__(self, folder, settings):
        pass

    def __call__(self, given):
        time.sleep(SECONDS)
        return {"y": given["x"]}
"""
SECONDS = 0.2
CLIENTS = 20
OF_ONE_CLIENT = 6
BODY = strangers.tensors(strangers.x())
PATH = strangers.infer("slow")


@pytest.fixture(scope="module")
def server(environment, tmp_path_factory):
    """A model as packages have it, whose work takes a while, one request after the other."""
    repository = tmp_path_factory.mktemp("repository")
    version = repository / "slow" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(same.CONFIG.replace('"same"', '"slow"'))
    shutil.copy(Path(served.__file__).with_name("model.py"), version)
    (version / "work.py").write_text(WORK.replace("SECONDS", str(SECONDS)))
    (version / "settings.json").write_text(json.dumps({"work": "work.py"}))
    with triton_server.serving(environment, repository) as server:
        yield server


@pytest.fixture
def proxy(server, tmp_path):
    with front.nginx(server, tmp_path, of_one_client=OF_ONE_CLIENT) as started:
        yield started


def vanish(port):
    """Let clients send a whole request each, and hang up while the first is in work."""
    connections = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(CLIENTS)]
    for each in connections:
        each.sendall(strangers.post(BODY, path=PATH))
    time.sleep(SECONDS / 2)
    for each in connections:
        strangers.reset(each)


def waited(port):
    """Return how many seconds a client at another address waits for its answer."""
    start = time.monotonic()
    assert front.ask(port, "POST", PATH, BODY, source="127.0.0.9") == 200
    return time.monotonic() - start


@contextlib.contextmanager
def work_of(server):
    """Yield a list, which holds the number of requests that the model worked on in the block when the block is left."""
    before, worked = triton_server.counts(server, "slow")[0], []
    yield worked
    worked.append(triton_server.counts(server, "slow")[0] - before)


def test_of_the_http_clients_of_one_address_that_hang_up_no_more_than_the_limit_are_worked_for(server, proxy):
    with work_of(server) as worked:
        vanish(proxy.port)
        refused = front.ask(proxy.port, "POST", PATH, BODY)
        seconds = waited(proxy.port)
    print(f"\nbehind the proxy: {worked[0] - 1} requests of {CLIENTS} vanished clients; another waited {seconds:.2f} s")
    assert refused == 503  # a client that hung up counts until Triton has answered
    assert worked == [OF_ONE_CLIENT + 1]
    assert seconds < SECONDS * (CLIENTS + OF_ONE_CLIENT) / 2


@pytest.mark.whole("it shows what Triton does without the proxy")
def test_without_the_proxy_triton_works_for_all_http_clients_that_hung_up(server):
    port = int(server.http.rpartition(":")[2])
    with work_of(server) as worked:
        vanish(port)
        seconds = waited(port)
    print(
        f"\nwithout the proxy: {worked[0] - 1} requests of {CLIENTS} vanished clients; another waited {seconds:.2f} s"
    )
    assert worked == [CLIENTS + 1]
    assert seconds > SECONDS * (CLIENTS - 2)


def test_a_call_of_grpc_that_was_cancelled_is_not_worked_on_behind_the_proxy(server, proxy):
    with grpc.InferenceServerClient(proxy.grpc) as client:
        calls = [client.async_infer("slow", same.rows([1]), lambda **_: None) for _ in range(OF_ONE_CLIENT)]
        time.sleep(SECONDS / 2)
        for each in calls:
            each.cancel()
        seconds = waited(proxy.port)
    print(f"\ngRPC: {OF_ONE_CLIENT} cancelled calls; another waited {seconds:.2f} s")
    assert seconds < SECONDS * OF_ONE_CLIENT * 3 / 4
