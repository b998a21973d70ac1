"""A rollout and a rollback of a package under load lose no request; without the manifests' preStop commands they do."""

import http.client
import json
import threading
import time
import urllib.request
from collections import Counter

import graphs
import numpy as np
import pods
import pytest
import triton_server
from tritonclient import grpc

from engine.kit.triton.serving import Serving
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("tests/server/test_manifests.py ends the proxy alone")]

RATE = 200
THREADS = 6
"""Clients of each protocol; each has one connection, which it keeps. The proxy takes eight requests of one address."""
SENT = [1.0, 2.0]
PATH = "/v2/models/my_net/infer"
BODY = json.dumps({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": SENT}]})


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Two versions of one package: they add 1 and 2."""
    folder = tmp_path_factory.mktemp("packages")
    for version in (1, 2):
        text = "(float[batch,2] x) => (float[batch,2] y) { y = Add(x, w) }"
        model = graphs.write(folder / f"model{version}", graphs.parsed(text, w=np.float32(version)))
        serving = Serving(model_name="my_net", ensemble="my_net_tensors", largest={"batch": 4}, threads=1)
        Package(serving=serving).run(folder / f"package{version}", validated=model, checkpoint=model)
    return folder / "package1", folder / "package2"


@pytest.fixture
def cluster(environment):
    with pods.folder_of_all() as folder:
        cluster = pods.Cluster(environment, folder)
        yield cluster
        cluster.close()


class Load:
    """Clients that send requests at a rate over long-lived connections, and repeat none."""

    def __init__(self, cluster):
        self._cluster, self._stop, self._lock = cluster, threading.Event(), threading.Lock()
        self.answers, self.failures = Counter(), []
        self._threads = [threading.Thread(target=self._client, args=(which,)) for which in ("http", "grpc") * THREADS]

    def __enter__(self):
        self.began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self.seconds = time.monotonic() - self.began

    def _client(self, which):
        with open_http(self._cluster.http) if which == "http" else open_grpc(self._cluster.grpc) as ask:
            apart, due = len(self._threads) / RATE, time.monotonic()
            while not self._stop.is_set():
                due = max(due + apart, time.monotonic() + apart / 2)  # late requests follow, at most at twice the rate
                time.sleep(due - time.monotonic())
                try:
                    version = ask()
                except Exception as error:  # noqa: BLE001 - each is a lost request
                    with self._lock:
                        self.failures.append(f"{time.monotonic() - self.began:.2f} s, {which}: {error!r}"[:300])
                else:
                    with self._lock:
                        self.answers[which, version] += 1


class open_http:  # noqa: N801 - used as a function
    """A connection of HTTP/1.1, which is opened anew when the server has said that it closes it."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __enter__(self):
        return self

    def __call__(self):
        try:
            self._connection.request("POST", PATH, BODY)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        assert response.status == 200, (response.status, text)
        return version_of(json.loads(text)["outputs"][0]["data"])

    def __exit__(self, *_):
        self._connection.close()


class open_grpc:  # noqa: N801 - used as a function
    """A channel of gRPC with a connection of its own."""

    def __init__(self, port):
        options = [("grpc.use_local_subchannel_pool", 1)]
        self._client = grpc.InferenceServerClient(f"127.0.0.1:{port}", channel_args=options)
        self._inputs = triton_server.inputs(x=np.array([SENT], np.float32))

    def __enter__(self):
        return self

    def __call__(self):
        return version_of(self._client.infer("my_net", self._inputs, client_timeout=60).as_numpy("y")[0])

    def __exit__(self, *_):
        self._client.close()


def version_of(answered):
    (version,) = {round(float(here - sent), 3) for here, sent in zip(answered, SENT, strict=True)}
    return int(version)


def test_a_rollout_and_a_rollback_under_load_lose_no_request(cluster, packages):
    one, two = packages
    first = cluster.start(one)
    cluster.replace(None, first)
    with urllib.request.urlopen(f"http://127.0.0.1:{first.metrics}/metrics", timeout=30) as answer:
        assert b"nv_inference_pending_request_count{" in answer.read()
    with Load(cluster) as load:
        second = cluster.start(two)
        rollout = cluster.replace(first, second)
        assert all(load.answers[which, 2] for which in ("http", "grpc"))
        before = load.answers.copy()
        time.sleep(3)
        moved = load.answers - before
        third = cluster.start(one)
        rollback = cluster.replace(second, third)
        before = load.answers.copy()
        time.sleep(3)
        back = load.answers - before
    print(f"{load.answers.total()} requests in {load.seconds:.0f} s: {dict(load.answers)}; ends {rollout} {rollback}")
    assert load.failures == []
    assert load.answers.total() > 0.9 * RATE * load.seconds
    assert {version for _, version in moved} == {2}
    assert {version for _, version in back} == {1}
    for ended in (rollout, rollback):
        assert ended["proxy"] <= ended["triton"]


def test_without_the_commands_of_the_manifests_requests_are_lost(cluster, packages):
    one, two = packages
    first = cluster.start(one)
    cluster.replace(None, first)
    second = cluster.start(two)
    with Load(cluster) as load:
        time.sleep(3)
        assert load.failures == []
        cluster.replace(first, second, pre_stop=False)
        time.sleep(3)
    print(f"{len(load.failures)} of {load.answers.total() + len(load.failures)} requests are lost: {load.failures[:4]}")
    assert load.failures
