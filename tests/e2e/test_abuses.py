"""A stranger abuses a real Triton through the proxy of docs/serving.md: the server lives, and others wait little."""

import contextlib
import gzip
import http.client
import signal
import statistics
import subprocess
import sys
import time

import abuses
import front
import models
import numpy as np
import pytest
import same
import strangers
import triton_server
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

from engine.kit.triton.serving import Serving
from engine.steps.package import Package

pytestmark = pytest.mark.slow

SLOWER = 3.0
"""How many times longer the p95 of another client's requests may be beside an abuse than alone."""
TURNS, SECONDS = 7, 0.6
"""How often a client is measured alone and beside an abuse, in turns, and for how long each time."""
ANOTHER = ("127.0.0.9", 0)
"""The address of the other client: the stranger has 127.0.0.1."""
SHORT = abuses.text()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A package of a small text model, and a model of numbers without a tokenizer."""
    folder = tmp_path_factory.mktemp("repository")
    source = folder / "source"
    models.onnx_text(source / "model.onnx")
    models.save_tokenizer(source)
    serving = Serving(model_name="plain", ensemble="plain_text", largest={"batch": 8, "sequence": 48})
    Package(serving=serving).run(folder / "models", validated=source, checkpoint=source)
    same.write(folder / "models")
    return folder / "models"


@pytest.fixture(scope="module")
def server(repository, environment):
    with triton_server.serving(environment, repository) as server:
        yield server
        assert server.ended() is None, server.last_words()


@pytest.fixture(scope="module")
def proxy(server, tmp_path_factory):
    with front.nginx(server, tmp_path_factory.mktemp("nginx")) as started:
        yield started


@contextlib.contextmanager
def stranger(abuse, proxy):
    """A process that abuses the server while it is not stopped by a signal; it begins stopped."""
    command = ["nice", "-n", "5", sys.executable, abuses.__file__, abuse, str(proxy.port), proxy.grpc]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def answered(port, seconds):
    """Return how many seconds each short request of another client took, one after the other."""
    took, end = [], time.monotonic() + seconds
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=ANOTHER)
    with contextlib.closing(connection):
        while time.monotonic() < end or not took:
            start = time.monotonic()
            connection.request("POST", abuses.infer(abuses.TEXT_MODEL), SHORT)
            answer = connection.getresponse()
            assert (answer.status, b'"logits"' in answer.read()) == (200, True)
            took.append(time.monotonic() - start)
            time.sleep(0.005)  # it stays below the rate of one address, and leaves the stranger a CPU
    return took


def p95(took):
    return float(np.percentile(took, 95))


@pytest.mark.sample(4)
@pytest.mark.parametrize("abuse", abuses.ABUSES)
def test_the_server_lives_and_answers_others(server, proxy, abuse, request):
    whole = request.config.getoption("whole")
    answered(proxy.port, 0.2)
    ratios = []
    with stranger(abuse, proxy) as process:
        for _ in range(TURNS if whole else 1):
            alone = p95(answered(proxy.port, SECONDS))
            process.send_signal(signal.SIGCONT)
            ratios.append(p95(answered(proxy.port, SECONDS)) / alone)
            process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        tried = int(process.communicate(timeout=60)[0])
    slower = statistics.median(ratios)
    print(f"\n{abuse}: {tried} times; p95 of another client {slower:.2f} x")
    assert tried > 0
    assert server.ended() is None
    assert front.ask(proxy.port, "GET", "/v2/health/ready", source=ANOTHER[0]) == 200
    for _ in range(100):  # what the stranger has in work counts for this process, too: it has the same address
        if front.ask(proxy.port, "GET", "/v2/health/ready") == 200:
            break
        time.sleep(0.1)
    assert triton_server.infer(server, "same", x=np.array([5], dtype=np.int64))["y"].tolist() == [5]
    with grpc.InferenceServerClient(proxy.grpc) as client:
        assert client.infer("same", same.rows([7]), client_timeout=30).as_numpy("y").tolist() == [7]
    if whole:  # a sample beside other tests cannot tell
        assert slower <= SLOWER


def named(input_ids, attention_mask):
    """Return the tensors of the ONNX model behind the ensemble."""
    given = {"input_ids": input_ids, "attention_mask": attention_mask}
    return {name: np.array([row], dtype=np.int64) for name, row in given.items()}


@pytest.mark.parametrize(
    "tensors",
    [named([10**9], [1]), named([-(10**9)], [1]), named([1, 2, 3], [1, 1]), named([1, 2, 3], [1, 1, 1, 1, 1])],
    ids=["an id beyond the vocabulary", "an id below zero", "a mask that is shorter", "a mask that is longer"],
)
def test_tensors_that_do_not_fit_the_model_behind_an_ensemble_are_a_mistake_of_the_client(proxy, tensors):
    body = strangers.tensors(
        *[{"name": name, "shape": each.shape, "datatype": "INT64", "data": each.ravel().tolist()}
          for name, each in tensors.items()]
    )  # fmt: skip
    assert front.ask(proxy.port, "POST", abuses.infer(abuses.MODEL_BEHIND), body) == 400
    with grpc.InferenceServerClient(proxy.grpc) as client:
        with pytest.raises(InferenceServerException) as refused:
            client.infer(abuses.MODEL_BEHIND, triton_server.inputs(**tensors), client_timeout=30)
        assert refused.value.status() == "StatusCode.INVALID_ARGUMENT"


def test_there_are_as_many_abuses_as_were_promised():
    assert len(abuses.ABUSES) >= 60


@pytest.mark.whole
def test_calls_of_grpc_that_are_cancelled_end_this_triton_as_the_page_says(repository, environment, tmp_path):
    """Where it does not any more, the page and the comment in the configuration are to be changed."""
    with triton_server.serving(environment, repository) as server, front.nginx(server, tmp_path) as proxy:
        assert server.version == "2.51.0"
        with stranger("a deadline of no time", proxy) as process:
            process.send_signal(signal.SIGCONT)
            for _ in range(1200):
                if server.ended() is not None:
                    break
                time.sleep(0.1)
        assert server.ended() == 128 + signal.SIGSEGV


@pytest.mark.whole
def test_what_the_proxy_keeps_away_would_end_the_server(repository, environment):
    """A control: the first abuse of the table ends a Triton without a proxy."""
    body = gzip.compress(abuses.DEEP)
    with triton_server.serving(environment, repository) as server:
        port = int(server.http.rpartition(":")[2])
        assert front.ask(port, "POST", abuses.infer("same"), body, {"Content-Encoding": "gzip"}) is None
        for _ in range(100):
            if server.ended() is not None:
                return
            time.sleep(0.1)
    raise AssertionError("the server lives: the table shows nothing")
