"""Packages on a real Triton server: over HTTP and gRPC they answer what ONNX Runtime answers in this process."""

import json
import shutil
import urllib.request

import graphs
import numpy as np
import pytest
import triton_server
from onnx import helper, numpy_helper
from tritonclient import grpc

from engine.kit import ort, tokenise
from engine.kit.triton.serving import Serving
from engine.steps.package import Package

pytestmark = pytest.mark.slow

TEXTS = ("The film is a charming and often affecting journey.", "ok", "Das Wetter ist heute schön. 日本語")


@pytest.fixture(scope="module")
def environment(request):
    try:
        return triton_server.venv(request.config.cache.mkdir("triton"))
    except triton_server.Unavailable as reason:
        pytest.skip(f"no Triton server here: {reason}")


def row_sums():
    """x [batch, 4] times weight [batch] -> y [batch]: tensors that have one number a row."""
    nodes = [
        helper.make_node("ReduceSum", ["x", "axis"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "weight"], ["y"]),
    ]
    inputs = [("x", graphs.FLOAT, ["batch", 4]), ("weight", graphs.FLOAT, ["batch"])]
    axis = numpy_helper.from_array(np.array([1]), "axis")
    return graphs.graph(nodes, inputs, [("y", graphs.FLOAT, ["batch"])], [axis])


@pytest.fixture(scope="module")
def repository(minilm_checkpoint, minilm_exported, tmp_path_factory):
    """Packages in one repository: MiniLM with its tokenizer, and ONNX files without any."""
    made = tmp_path_factory.mktemp("packages")
    tiny = graphs.write(made / "layers", graphs.layers())
    ort.save_options(tiny, level="extended")
    largest = {"batch": 8, "sequence": 128}
    minilm = Package(serving=Serving(model_name="minilm", ensemble="minilm_text", largest=largest))
    layers = Package(serving=Serving(model_name="layers", ensemble="layers_text", largest=largest))
    sums = graphs.write(made / "sums", row_sums())
    Package(serving=Serving(model_name="sums", ensemble="sums_text", largest=largest)).run(
        made / "sums-package", validated=sums, checkpoint=sums
    )
    whole = graphs.write(made / "whole", graphs.recurrent())
    Package(serving=Serving(model_name="whole", ensemble="whole_text", largest=largest)).run(
        made / "whole-package", validated=whole, checkpoint=whole
    )
    minilm.run(made / "minilm-package", validated=minilm_exported, checkpoint=minilm_checkpoint)
    layers.run(made / "layers-package", validated=tiny, checkpoint=tiny)
    together = made / "repository"
    for package in ("minilm-package", "layers-package", "sums-package", "whole-package"):
        shutil.copytree(made / package, together, dirs_exist_ok=True)
    return together


@pytest.fixture(scope="module")
def server(repository, environment, tmp_path_factory):
    with triton_server.serving(repository, tmp_path_factory.mktemp("server"), environment) as running:
        yield running


def over_http(server, model, inputs):
    """Ask with plain JSON, as any HTTP client can."""
    body = {"inputs": [{"name": name, **value} for name, value in inputs.items()]}
    request = urllib.request.Request(
        f"http://{server.http}/v2/models/{model}/infer", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        outputs = json.load(answer)["outputs"]
    return {each["name"]: np.array(each["data"], dtype=np.float32).reshape(each["shape"]) for each in outputs}


def over_grpc(server, model, arrays, kinds):
    client = grpc.InferenceServerClient(server.grpc)
    asked = []
    for name, array in arrays.items():
        value = grpc.InferInput(name, array.shape, kinds[name])
        value.set_data_from_numpy(array)
        asked.append(value)
    try:
        answer = client.infer(model, asked, client_timeout=30)
        return {output.name: answer.as_numpy(output.name) for output in answer.get_response().outputs}
    finally:
        client.close()


def expected(checkpoint, exported, texts):
    """What ONNX Runtime answers here to the same texts, padded to the longest."""
    tokeniser = tokenise.load(checkpoint, longest=128)
    rows = [tokeniser.row(text) for text in texts]
    longest = max(row["input_ids"].shape[1] for row in rows)
    inputs = {
        name: np.concatenate([np.pad(row[name], ((0, 0), (0, longest - row[name].shape[1]))) for row in rows])
        for name in rows[0]
    }
    return ort.run(ort.session(exported, threads=1), inputs)["last_hidden_state"]


def test_the_ensemble_answers_texts_over_http_and_grpc(server, minilm_checkpoint, minilm_exported):
    wanted = expected(minilm_checkpoint, minilm_exported, TEXTS)
    data = {"TEXT": {"shape": [len(TEXTS), 1], "datatype": "BYTES", "data": [[text] for text in TEXTS]}}
    array = np.array([[text.encode()] for text in TEXTS], dtype=object)
    for answer in (
        over_http(server, "minilm_text", data),
        over_grpc(server, "minilm_text", {"TEXT": array}, {"TEXT": "BYTES"}),
    ):
        assert list(answer) == ["last_hidden_state"]
        assert answer["last_hidden_state"].shape == wanted.shape
        assert np.abs(answer["last_hidden_state"] - wanted).max() < 1e-4


def test_each_model_of_the_package_can_be_asked_by_itself(server, minilm_checkpoint, minilm_exported):
    row = tokenise.load(minilm_checkpoint).row(TEXTS[0])
    answer = over_grpc(server, "minilm", row, dict.fromkeys(row, "INT64"))
    wanted = expected(minilm_checkpoint, minilm_exported, TEXTS[:1])
    assert np.abs(answer["last_hidden_state"] - wanted).max() < 1e-4
    text = np.array([[TEXTS[0].encode()]], dtype=object)
    tokens = over_grpc(server, "minilm_tokenizer", {"TEXT": text}, {"TEXT": "BYTES"})
    assert set(tokens) == set(row)
    assert all(np.array_equal(tokens[name], row[name]) for name in row)


def test_a_text_longer_than_the_profiles_is_cut_not_refused(server):
    text = np.array([[b"long " * 2000]], dtype=object)
    answer = over_grpc(server, "minilm_text", {"TEXT": text}, {"TEXT": "BYTES"})
    assert answer["last_hidden_state"].shape == (1, 128, 384)


def test_bytes_that_are_no_text_are_an_error_of_that_request(server):
    broken = np.array([[b"\xff\xfe"]], dtype=object)
    with pytest.raises(Exception, match="utf-8"):
        over_grpc(server, "minilm_text", {"TEXT": broken}, {"TEXT": "BYTES"})
    whole = np.array([[b"fine"]], dtype=object)
    assert over_grpc(server, "minilm_text", {"TEXT": whole}, {"TEXT": "BYTES"})


def test_a_model_without_a_tokenizer_is_served_over_http_and_grpc(server, repository):
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    wanted = ort.run(ort.session(repository / "layers" / "1", threads=1, level="extended"), {"x": x})["y"]
    data = {"x": {"shape": [3, 64], "datatype": "FP32", "data": x.tolist()}}
    for answer in (over_http(server, "layers", data), over_grpc(server, "layers", {"x": x}, {"x": "FP32"})):
        assert np.allclose(answer["y"], wanted, atol=1e-5)


def test_one_number_a_row_goes_in_and_comes_out_as_one(server):
    arrays = {"x": np.arange(8, dtype=np.float32).reshape(2, 4), "weight": np.array([[1.0], [10.0]], np.float32)}
    answer = over_grpc(server, "sums", arrays, dict.fromkeys(arrays, "FP32"))
    assert answer["y"].tolist() == [[6.0], [220.0]]


def test_a_recurrent_model_is_served_with_its_whole_shape(server, repository):
    x = np.random.default_rng(0).standard_normal((5, 2, 32)).astype(np.float32)
    wanted = ort.run(ort.session(repository / "whole" / "1", threads=1), {"x": x})["y"]
    assert np.allclose(over_grpc(server, "whole", {"x": x}, {"x": "FP32"})["y"], wanted, atol=1e-5)


def test_triton_reports_the_configuration_that_was_packaged(server):
    client = grpc.InferenceServerClient(server.grpc)
    config = client.get_model_config("minilm").config
    assert config.max_batch_size == 8
    assert config.platform == "onnxruntime_onnx"
    assert client.get_model_config("layers").config.optimization.graph.level == 1
    client.close()
