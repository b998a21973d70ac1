"""A package of OpenVINO on a real Triton server, with a stand-in for its backend: the answers of OpenVINO here."""

import json
import urllib.request

import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import padded_texts
import pytest
import triton_server
from tritonclient import grpc

from engine.kit.triton.serving import Serving
from engine.runtimes.execution import Execution
from engine.server import install, packaged
from engine.server.needs import Needs
from engine.steps.openvino_build import OpenvinoBuild
from engine.steps.package import Package

pytestmark = pytest.mark.slow

EXECUTION = Execution(runtime="openvino", options={})
TEXTS = ("The film is a charming and often affecting journey.", "ok")


@pytest.fixture(scope="module")
def built(minilm_checkpoint, minilm_exported, tmp_path_factory):
    """MiniLM in int8 as OpenVINO's files, and its package."""
    folder = tmp_path_factory.mktemp("openvino")
    step = OpenvinoBuild(precision="int8", own_texts=True)
    step.run(folder / "built", checked=minilm_exported, checkpoint=minilm_checkpoint)
    serving = Serving(
        model_name="small", ensemble="small_text", largest={"batch": 8, "sequence": 128}, postprocess=False,
        execution=EXECUTION,
    )  # fmt: skip
    Package(serving=serving).run(folder / "package", validated=folder / "built", checkpoint=minilm_checkpoint)
    return folder


@pytest.fixture(scope="module")
def server(built, environment, tmp_path_factory):
    if packaged.lacks(environment, Needs(backends=frozenset({"openvino"}))):
        install.install(environment)
    with triton_server.serving(built / "package", tmp_path_factory.mktemp("server"), environment) as running:
        yield running


def test_texts_over_http_and_grpc_get_the_answers_of_openvino_here(server, built, minilm_checkpoint):
    expected = expected_states(built / "built", minilm_checkpoint)
    data = {"name": "TEXT", "shape": [len(TEXTS), 1], "datatype": "BYTES", "data": [[text] for text in TEXTS]}
    for states in (over_http(server, data), over_grpc(server)):
        assert states.shape == expected.shape
        assert np.array_equal(states, expected)


def test_the_backend_joins_no_requests(built):
    text = (built / "package" / "small" / "config.pbtxt").read_text()
    assert 'backend: "openvino"' in text
    assert "max_batch_size" not in text
    assert "dynamic_batching" not in text
    assert "PERFORMANCE_HINT" in text


def expected_states(directory, checkpoint):
    """What OpenVINO answers here to the texts, padded to the longest."""
    inputs = padded_texts.inputs(checkpoint, TEXTS)
    return EXECUTION.by.runner(directory, EXECUTION, threads=1).run(inputs)["last_hidden_state"]


def over_http(server, data):
    body = json.dumps({"inputs": [data]}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{server.http}/v2/models/small_text/infer", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        [output] = json.load(answer)["outputs"]
    return np.array(output["data"], np.float32).reshape(output["shape"])


def over_grpc(server):
    client = grpc.InferenceServerClient(server.grpc)
    texts = np.array([[text.encode()] for text in TEXTS], dtype=object)
    value = grpc.InferInput("TEXT", texts.shape, "BYTES")
    value.set_data_from_numpy(texts)
    try:
        return client.infer("small_text", [value], client_timeout=30).as_numpy("last_hidden_state")
    finally:
        client.close()
