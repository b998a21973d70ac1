"""A Python process of a real Triton server is killed: the probe of the package says so, and `recipe serve` ends."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import documents
import numpy as np
import pytest
import triton_server
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

from engine.kit.triton import served
from engine.kit.triton.served import probe as served_probe
from engine.kit.triton.served.probe import Probe, processes
from engine.kit.triton.serving import Serving
from engine.server import manifests
from engine.server.health import ServerWatch
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_query.py asks a real server for a package of each kind")]

NOTICED_SECONDS = 5.0
PROBES = 5
"""How many probes in a row must fail while clients send requests, which the living process answers."""
TOKENIZERS = ("minilm_tokenizer_0_0", "minilm_tokenizer_0_1")
SHOWN = TOKENIZERS[0]
"""The instance whose process is killed in docs/serving.md."""
KILLED = (*TOKENIZERS, "minilm_0_0")
SLOW = """
import time
import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            seconds = triton.get_input_tensor_by_name(request, "seconds").as_numpy()
            time.sleep(float(seconds.max()))
            responses.append(triton.InferenceResponse([triton.Tensor("y", seconds)]))
        return responses
"""
SLOW_CONFIG = """
name: "slow" backend: "python" max_batch_size: 0
input { name: "seconds" data_type: TYPE_FP32 dims: [1] }
output { name: "y" data_type: TYPE_FP32 dims: [1] }
"""


@pytest.fixture(scope="module")
def package(minilm_checkpoint, minilm_exported, tmp_path_factory):
    """The package of MiniLM."""
    folder = tmp_path_factory.mktemp("package") / "repository"  # `stub` knows a model's process by its folder
    serving = Serving(model_name="minilm", ensemble="minilm_text", largest={"batch": 8, "sequence": 512})
    Package(serving=serving).run(folder, validated=minilm_exported, checkpoint=minilm_checkpoint)
    return folder


@pytest.fixture(scope="module")
def server(package, environment, tmp_path_factory):
    """A server of the package, and of a model that takes as long as a request says. The last tests end processes."""
    repository = tmp_path_factory.mktemp("server") / "repository"
    shutil.copytree(package, repository)
    (repository / "slow" / "1").mkdir(parents=True)
    (repository / "slow" / "config.pbtxt").write_text(SLOW_CONFIG)
    (repository / "slow" / "1" / "model.py").write_text(SLOW)
    with triton_server.serving(environment, repository) as server:
        yield server


def probe(package, server, *words):
    """Run the probe as an orchestrator does: with a Python that has no further package."""
    command = [sys.executable, "-I", "-S", package / served.PROBE, "--url", f"http://{server.http}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def stub(server, instance):
    """Return the Python process that runs an instance of a model."""
    [number] = [number for number, name in processes(server.pid).items() if name == instance]
    return number


def send_requests(server, stop):
    """Send requests until `stop` is set; return how many got an answer, and how many an error."""
    client, counts, errors = grpc.InferenceServerClient(server.grpc), [0, 0], set()
    value = grpc.InferInput("TEXT", [1, 1], "BYTES")
    value.set_data_from_numpy(np.array([[b"a short text"]], dtype=object))
    while not stop.is_set():
        try:
            client.infer("minilm_text", [value], client_timeout=20)
            counts[0] += 1
        except InferenceServerException as error:
            counts[1] += 1
            errors.add(str(error))
    client.close()
    assert not any("Deadline" in error for error in errors), "a request got neither an answer nor an error"
    return counts


def killed_under_load(server, package, instance):
    """Kill the process of an instance while clients send requests; return the seconds until the watch noticed."""
    model = instance.rsplit("_", 2)[0]
    assert probe(package, server).returncode == 0
    watch, stop = ServerWatch(f"http://{server.http}", server.pid), threading.Event()
    with ThreadPoolExecutor(4) as clients:
        counts = [clients.submit(send_requests, server, stop) for _ in range(4)]
        time.sleep(1.0)
        assert watch.dead == {}
        os.kill(stub(server, instance), signal.SIGKILL)
        start = time.monotonic()
        while not watch.dead and time.monotonic() - start < 4 * NOTICED_SECONDS:
            time.sleep(0.05)
        seconds = time.monotonic() - start
        assert [probe(package, server).returncode for _ in range(PROBES)] == [1] * PROBES
        stop.set()
        answers, errors = (sum(numbers) for numbers in zip(*(count.result() for count in counts), strict=True))
    assert model in watch.dead
    assert answers
    assert errors
    assert urllib.request.urlopen(f"http://{server.http}/v2/health/ready", timeout=30).status == 200
    failed = probe(package, server)
    assert failed.returncode == 1
    assert f"{model}: " in failed.stdout
    if instance == SHOWN:
        [page] = [block for block in documents.run_by(__file__) if block.page.name == "serving.md"]
        [(_, shown), (_, code)] = page.transcript()
        assert (failed.stdout, failed.returncode) == (shown, int(code))
    return seconds


def test_a_busy_server_is_not_called_dead(server, package):
    """Requests for four seconds wait before the probe, which waits for two."""
    body = json.dumps({"inputs": [{"name": "seconds", "shape": [1], "datatype": "FP32", "data": [0.5]}]}).encode()

    def ask(_):
        with urllib.request.urlopen(f"http://{server.http}/v2/models/slow/infer", body, timeout=60) as answer:
            return answer.status

    with ThreadPoolExecutor(8) as clients:
        answers = clients.map(ask, range(8))
        time.sleep(0.2)
        busy = probe(package, server, "--timeout", "2")
        assert (busy.returncode, busy.stdout) == (0, "")
        assert set(answers) == {200}


def test_a_request_that_takes_longer_than_a_probe_waits_as_a_rule_does_not_fail_that_of_the_manifests(server, package):
    words = manifests.LIVENESS[2:]
    body = json.dumps({"inputs": [{"name": "seconds", "shape": [1], "datatype": "FP32", "data": [9]}]}).encode()
    with ThreadPoolExecutor(1) as client:
        answer = client.submit(urllib.request.urlopen, f"http://{server.http}/v2/models/slow/infer", body, 60)
        time.sleep(0.2)
        assert probe(package, server, "slow").stdout == "slow: no answer within 5 s\n"
        patient = probe(package, server, *words, "slow")
        assert not answer.done() or answer.result().status == 200
    assert (patient.returncode, patient.stdout) == (0, "")


def test_a_server_that_is_not_there_fails_the_probe(package, server):
    command = [sys.executable, "-I", package / served.PROBE, "--url", "http://127.0.0.1:9"]
    failed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert failed.returncode == 1
    assert failed.stdout.startswith("http://127.0.0.1:9: the server does not answer: ")
    unknown = probe(package, server, "nothing")
    assert unknown.returncode == 1
    assert "nothing: " in unknown.stdout


def test_a_killed_process_is_noticed_by_the_watch_and_by_the_probe(server, package):
    killed_under_load(server, package, SHOWN)  # within 20 s, however busy the machine is; --whole holds the 5 s


def test_without_the_processes_a_request_to_each_instance_tells(server, monkeypatch):
    """The server of the test before, as another machine sees it. One probe may miss the dead process."""
    monkeypatch.setattr(served_probe, "_server_at", lambda _: None)
    probes = [Probe(f"http://{server.http}", 6 * NOTICED_SECONDS).dead() for _ in range(PROBES)]
    reasons = [reason for dead in probes for reason in dead.values()]
    assert reasons
    assert all(f"Stub process '{SHOWN}' is not healthy." in reason for reason in reasons)


@pytest.mark.whole
def test_a_hundred_killed_processes_are_noticed(package, environment):
    """A restart of the server mends it: the probe then passes, which `killed_under_load` begins with."""
    seconds = []
    for number in range(100):
        with triton_server.serving(environment, package) as server:
            seconds.append(killed_under_load(server, package, KILLED[number % len(KILLED)]))
    print(f"noticed after {sorted(seconds)[50]:.1f} s (median), {max(seconds):.1f} s at most")
    assert max(seconds) < NOTICED_SECONDS


def test_a_model_that_hangs_does_not_answer(server, package):
    os.kill(stub(server, "slow_0"), signal.SIGSTOP)
    failed = probe(package, server, "--timeout", "2", "slow")
    assert failed.returncode == 1
    assert failed.stdout.startswith("slow: ")
