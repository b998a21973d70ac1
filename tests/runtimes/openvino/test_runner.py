"""Models run by OpenVINO: outputs equal to ONNX Runtime's, and answers that stay as they are."""

from types import SimpleNamespace

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.kit.onnx import onnx_files
from engine.runtimes import registry
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.openvino import compiled, ir, runner
from engine.runtimes.openvino.compiled import LATENCY, Calls
from engine.runtimes.openvino.runner import Blobs

X = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)


@pytest.fixture
def layers(tmp_path):
    """Two linear layers of 8 x 16 and 16 x 4, as an ONNX file."""
    return graphs.write(tmp_path / "layers", graphs.layers(8, 16))


@pytest.fixture
def opened(layers):
    """The runner of the two layers in fp32, as a rival."""
    original = SimpleNamespace(exported=layers, new_tokens=None)
    return registry.find("openvino").rival(
        original, name="openvino", precision="fp32", execution=Execution(), threads=1
    )


def test_outputs_are_those_of_onnx_runtime_and_a_later_call_changes_no_earlier_answer(opened, layers):
    expected = ort.run(ort.session(layers, threads=1), {"x": X})
    answers = opened.run({"x": X})
    assert answers.keys() == expected.keys()
    opened.run({"x": -X})
    assert np.abs(answers["y"] - expected["y"]).max() < 1e-5
    opened.prepare({"x": X})()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the blobs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "recipe" / runner.KIND


@pytest.fixture
def directory(tmp_path):
    """The directory of an IR of two linear layers of 8 x 16 and 16 x 4."""
    graph = graphs.write(tmp_path / "layers", graphs.layers(8, 16))
    (tmp_path / "ir").mkdir()
    ir.save(ir.of_onnx(graph / onnx_files.MODEL), tmp_path / "ir", {})
    return tmp_path / "ir"


def _answer(directory, shape=(), threads=1):
    model = ir.read(directory / ir.MODEL)
    if shape:
        model = ir.reshaped(model, {"x": shape})
    return Calls(model, threads=threads, compile=Blobs(directory).compiled).run({"x": X})["y"]


def _uncompiled(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a model was compiled")

    monkeypatch.setattr(compiled, "compiled", refuse)


@pytest.mark.parametrize("shape", [(), (3, 8)], ids=["free", "fixed"])
def test_a_blob_answers_bit_for_bit_as_the_compiled_model(directory, folder, monkeypatch, shape):
    fresh = _answer(directory, shape)
    assert len(list(folder.iterdir())) == 1
    _uncompiled(monkeypatch)
    np.testing.assert_array_equal(_answer(directory, shape), fresh)


def test_each_shape_and_number_of_threads_has_a_blob(directory, folder):
    for shape, threads in (((), 1), ((3, 8), 1), ((3, 8), 2), ((3, 8), 1)):
        _answer(directory, shape, threads)
    assert len(list(folder.iterdir())) == 3


def test_a_damaged_blob_is_written_anew(directory, folder):
    fresh = _answer(directory)
    (blob,) = folder.iterdir()
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-1])
    np.testing.assert_array_equal(_answer(directory), fresh)
    assert runner.user_cache.read_blob(runner.KIND, blob.name) is not None


def test_a_blob_that_openvino_refuses_is_written_anew(directory, folder, monkeypatch):
    fresh = _answer(directory)
    (blob,) = folder.iterdir()
    runner.user_cache.keep_blob(runner.KIND, blob.name, b"of another version")
    np.testing.assert_array_equal(_answer(directory), fresh)
    _uncompiled(monkeypatch)
    np.testing.assert_array_equal(_answer(directory), fresh)


def test_another_cpu_gets_a_blob_of_its_own(directory, folder, monkeypatch):
    _answer(directory)
    monkeypatch.setattr(runner.cpu, "model", lambda: "another CPU")
    _answer(directory)
    assert len(list(folder.iterdir())) == 2


def test_the_compiled_options_are_those_of_the_package(directory, folder):
    model = ir.read(directory / ir.MODEL)
    both = [Blobs(directory).compiled(model, threads=1, options=LATENCY) for _ in range(2)]
    assert len(list(folder.iterdir())) == 1
    assert len({one.get_property("PERFORMANCE_HINT") for one in both}) == 1
    assert {one.get_property("INFERENCE_NUM_THREADS") for one in both} == {1}
