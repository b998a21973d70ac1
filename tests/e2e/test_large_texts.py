"""Clients that send large texts keep nobody else from answers, and leave nothing behind."""

import collections
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import front
import numpy as np
import pytest
import refusing_server
import triton_server
from tritonclient import grpc

from engine.kit.triton.serving import Serving
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole]

CLIENTS = 8
SECONDS = 60
TURNS = 6
"""In how many parts the seconds beside large texts are divided, with measurements to compare between them."""
SLOWER = 3.0
"""How many times longer the p95 of short requests may be beside large ones than alone."""
COPIES = 8
"""How many times the bytes in flight the server's memory may grow: gRPC, Triton's core and the model's process each
have copies."""
FLOOD = """
import ctypes, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with the tests, also where it is paused
try:  # its clients shall take no time from the server's CPUs, as clients on other machines do not
    open("/proc/self/autogroup", "w").write("19")
except OSError:  # a kernel without groups of sessions: `nice` is enough there
    pass
import numpy as np
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

address, megabytes, said = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
client = grpc.InferenceServerClient(address)
value = grpc.InferInput("TEXT", [1, 1], "BYTES")
value.set_data_from_numpy(np.array([[b"x " * (megabytes * 500_000)]], dtype=object))
refused = 0
print("ready", flush=True)
while not ended:
    try:
        client.infer("minilm_text", [value], client_timeout=300)
        sys.exit("a large text was answered")
    except InferenceServerException as error:
        if said not in str(error):
            sys.exit(f"another error: {error}")
        refused += 1
print(refused)
"""


@pytest.fixture(scope="module")
def repository(minilm_checkpoint, minilm_exported, tmp_path_factory):
    folder = tmp_path_factory.mktemp("package") / "minilm"
    serving = Serving(model_name="minilm", ensemble="minilm_text", largest={"batch": 8, "sequence": 256}, threads=1)
    Package(serving=serving).run(folder, validated=minilm_exported, checkpoint=minilm_checkpoint)
    return folder


def children(pid):
    """Return a process and its descendants."""
    processes, parents = [pid], {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    for one in processes:
        processes += [child for child, parent in parents.items() if parent == one]
    return processes


def memory(*parents):
    """Return the bytes that processes and their descendants have, without shared pages counted twice."""
    total = 0
    for pid in {each for parent in parents for each in children(parent)}:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return total


def short_requests(address, seconds):
    """Return how many seconds each of the short requests to an address for gRPC took, one after the other."""
    value = grpc.InferInput("TEXT", [1, 1], "BYTES")
    value.set_data_from_numpy(np.array([[b"a short text of somebody else"]], dtype=object))
    took, end = [], time.monotonic() + seconds
    with grpc.InferenceServerClient(address) as client:
        while time.monotonic() < end:
            start = time.monotonic()
            client.infer("minilm_text", [value], client_timeout=60)
            took.append(time.monotonic() - start)
            time.sleep(0.02)
    return took


def p95(took):
    """Return the 95th percentile in milliseconds."""
    return float(np.percentile(took, 95)) * 1e3


class Flood:
    """Clients, each in a session of its own, that send large texts while the block runs, and expect a refusal.

    They begin paused; `sending` lets them send.
    """

    def __init__(self, address, megabytes, refusal):
        command = ["nice", "-n", "19", sys.executable, "-c", FLOOD, address, str(megabytes), refusal]
        self._clients = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) for _ in range(CLIENTS)
        ]
        for client in self._clients:
            assert client.stdout.readline() == "ready\n"
        self._signal(signal.SIGSTOP)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self._clients:
            client.kill()
            client.wait()
            client.stdout.close()

    def _signal(self, number):
        for client in self._clients:
            client.send_signal(number)

    @contextlib.contextmanager
    def sending(self):
        """Let the clients send until the block ends."""
        self._signal(signal.SIGCONT)
        yield
        self._signal(signal.SIGSTOP)

    def refusals(self):
        """Let each client end its last request; return how many refusals each of them got, -1 for one that failed."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        return [int(client.communicate(timeout=400)[0] or -1) for client in self._clients]


class Peak:
    """The most memory that processes have, looked at twice a second until the block ends."""

    def __init__(self, *parents):
        self.bytes, self._parents, self._done = memory(*parents), parents, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self):
        while not self._done.wait(0.5):
            self.bytes = max(self.bytes, memory(*self._parents))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()


@pytest.mark.parametrize("megabytes", [10, 100])
def test_short_requests_are_answered_beside_large_ones(repository, environment, megabytes):
    with triton_server.serving(environment, repository) as server:
        with grpc.InferenceServerClient(server.grpc) as client:
            own = client.get_server_metadata().name  # the beginning of the names of its shared memory
        short_requests(server.grpc, 2)
        idle, alone, control, beside = memory(server.pid), [], [], []
        with (
            refusing_server.serving() as other,
            Flood(other, megabytes, refusing_server.REFUSAL) as elsewhere,
            Flood(server.grpc, megabytes, "this model takes at most") as clients,
            Peak(server.pid) as peak,
        ):
            for _ in range(TURNS):
                alone += short_requests(server.grpc, SECONDS / TURNS)
                with elsewhere.sending():
                    control += short_requests(server.grpc, SECONDS / TURNS)
                with clients.sending():
                    beside += short_requests(server.grpc, SECONDS / TURNS)
            sent_elsewhere, refused = elsewhere.refusals(), clients.refusals()
        after = short_requests(server.grpc, 10)
        grown = (peak.bytes - idle) / (CLIENTS * megabytes * 1_000_000)
        print(
            f"\n{megabytes} MB x {CLIENTS}: p95 alone {p95(alone):.1f} ms, beside clients of another server "
            f"{p95(control):.1f} ms (they got {sum(sent_elsewhere)} refusals), beside {p95(beside):.1f} ms "
            f"({p95(beside) / p95(alone):.2f} x and {p95(beside) / p95(control):.2f} x), after {p95(after):.1f} ms; "
            f"refused {sum(refused)}; memory {idle / 1e6:.0f} MB idle, "
            f"{peak.bytes / 1e6:.0f} MB at most: {grown:.1f} x the bytes in flight"
        )
    assert min(sent_elsewhere) > 0
    assert min(refused) > 0
    assert p95(beside) < SLOWER * p95(alone)
    assert grown < COPIES
    assert [path.name for path in Path("/dev/shm").iterdir() if path.name.startswith(own)] == []


@pytest.mark.parametrize("megabytes", [10, 100])
def test_behind_the_front_large_texts_take_no_memory(repository, environment, tmp_path, megabytes):
    tensor = {"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": ["x " * (megabytes * 500_000)]}
    body = json.dumps({"inputs": [tensor]}).encode()
    with (
        triton_server.serving(environment, repository) as server,
        front.nginx(server, tmp_path) as (port, _, pid),
    ):
        short_requests(server.grpc, 2)
        idle, end, statuses = memory(server.pid, pid), time.monotonic() + SECONDS, collections.Counter()

        def send():
            while time.monotonic() < end:
                statuses[front.ask(port, "POST", "/v2/models/minilm_text/infer", body)] += 1

        with Peak(server.pid, pid) as peak, ThreadPoolExecutor(CLIENTS) as clients:
            for each in [clients.submit(send) for _ in range(CLIENTS)]:
                each.result()
        short_requests(server.grpc, 2)
    print(
        f"\n{megabytes} MB x {CLIENTS} behind nginx: answers {dict(statuses)}; memory {idle / 1e6:.0f} MB idle, "
        f"{peak.bytes / 1e6:.0f} MB at most"
    )
    assert set(statuses) == {413}
    assert peak.bytes < 2 * idle
