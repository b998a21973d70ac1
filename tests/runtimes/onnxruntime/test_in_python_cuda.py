"""The session of a fused package for GPUs: on the CPU provider, and on a fake of the CUDA provider up to the graphs."""

import shutil

import fake_cuda_provider
import models
import numpy as np
import pytest

from engine.runtimes import routing
from engine.runtimes.onnxruntime import in_python_cuda
from engine.runtimes.onnxruntime.in_python_cuda import ModelSession

PAD = 7
FIXED = [{"batch": 1, "sequence": 8}, {"batch": 4, "sequence": 16}]
FACTS = {
    "inputs": {"input_ids": ["batch", "sequence"], "attention_mask": ["batch", "sequence"]},
    "outputs": {"logits": ["batch", None]},
    "fixed": FIXED,
    "free": False,
    "rows": "batch",
    "tokens": "sequence",
    "left": False,
    "fill": {"input_ids": PAD, "attention_mask": 0},
}
ON_CPU = {"provider": "CPUExecutionProvider", "graphs": False}
SIZES = [(1, 8), (1, 3), (2, 8), (4, 16), (3, 11), (1, 9), (5, 8), (1, 17)]


@pytest.fixture
def folder(tmp_path):
    """A version's folder: a text classifier with a mask, and routing.py."""
    models.onnx_text(tmp_path / "model.onnx")
    shutil.copy(routing.__file__, tmp_path / "routing.py")
    return tmp_path


def opened(folder, facts=FACTS, **settings):
    own = {"file": "model.onnx", "level": "ORT_ENABLE_ALL", "threads": 1, "options": {}, "graphs": True}
    return ModelSession(folder, {**own, "provider": fake_cuda_provider.CUDA, "routing": facts, **settings})


def texts(batch, sequence):
    """Texts whose ids are not the padding token, so that padding that a model sees changes its answers."""
    ids = np.random.default_rng(batch * 100 + sequence).integers(10, 40, (batch, sequence))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def expected(folder, given):
    return fake_cuda_provider.REAL(folder / "model.onnx", providers=["CPUExecutionProvider"]).run(None, given)[0]


def graphs_of(session):
    """Return the number of the graph of each run after those that prepare the shapes."""
    return [graph for graph, _ in session.runs]


@pytest.mark.parametrize("sizes", SIZES)
def test_a_request_gets_its_own_answer_whatever_shape_it_is_padded_to(folder, sizes):
    given = texts(*sizes)
    answer = opened(folder, **ON_CPU)(given, ["logits"])["logits"]
    assert answer.shape == (sizes[0], 3)
    np.testing.assert_allclose(answer, expected(folder, given), atol=1e-6)


def test_a_request_is_really_padded(folder):
    given = texts(1, 3)
    seen = opened(folder, facts={**FACTS, "fill": {"input_ids": PAD, "attention_mask": 1}}, **ON_CPU)
    assert not np.allclose(seen(given, ["logits"])["logits"], expected(folder, given), atol=1e-3)


def test_answers_stay_as_they_are_when_the_buffers_are_used_again(folder):
    session = opened(folder, **ON_CPU)
    first = session(texts(1, 5), ["logits"])["logits"]
    kept = first.copy()
    session(texts(1, 6), ["logits"])
    assert np.array_equal(first, kept)


def test_a_graph_is_captured_for_each_profile_and_replayed_for_what_fits_it(folder, monkeypatch, capsys):
    fake = fake_cuda_provider.install(monkeypatch)
    monkeypatch.setattr(in_python_cuda, "_free_bytes", iter((9_000_000, 5_000_000, 5_000_000, None)).__next__)
    session = opened(folder, options={"use_tf32": "0"})
    [inner] = fake.opened
    assert inner.settings == {"device_id": "0", "use_tf32": "0", "enable_cuda_graph": "1"}
    assert list(inner.graphs) == [1, 2]
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("batch 1 x sequence 8: CUDA graph 1 captured in ")
    assert first.endswith(" s, 4.0 MB of the GPU's memory")
    assert second.endswith(" s"), "no number where the driver tells none"
    inner.runs.clear()
    for sizes in SIZES:
        given = texts(*sizes)
        np.testing.assert_allclose(session(given, ["logits"])["logits"], expected(folder, given), atol=1e-6)
    assert graphs_of(inner) == [1, 1, 2, 2, 2, 2, -1, -1]


def test_other_integers_than_the_buffers_are_converted_and_not_copied_as_they_lie(folder, monkeypatch):
    fake_cuda_provider.install(monkeypatch)
    given = texts(1, 8)
    narrow = {name: array.astype(np.int32) for name, array in given.items()}
    assert np.array_equal(opened(folder)(narrow, ["logits"])["logits"], expected(folder, given))


def test_a_capture_that_fails_is_logged_and_its_shape_runs_without_a_graph(folder, monkeypatch, capsys):
    fake = fake_cuda_provider.install(monkeypatch, no_capture=frozenset({1}))
    session = opened(folder)
    assert "batch 1 x sequence 8: no fixed buffers: CUDA failure 901" in capsys.readouterr().out
    [inner] = fake.opened
    inner.runs.clear()
    session(texts(1, 8), ["logits"])
    session(texts(4, 16), ["logits"])
    assert graphs_of(inner) == [-1, 2]


def test_a_model_with_nodes_on_the_cpu_has_no_graphs_and_pays_for_no_padding(folder, monkeypatch, capsys):
    fake = fake_cuda_provider.install(monkeypatch, on_cpu=frozenset({"Softmax"}))
    session = opened(folder)
    assert "no CUDA graphs, and no padding" in capsys.readouterr().out
    [inner] = fake.opened
    session(texts(1, 5), ["logits"])
    assert inner.runs == [(-1, (("attention_mask", (1, 5)), ("input_ids", (1, 5))))]


def test_a_model_that_cannot_be_padded_is_replayed_at_its_exact_sizes_only(folder, monkeypatch):
    fake = fake_cuda_provider.install(monkeypatch)
    session = opened(folder, facts={**FACTS, "rows": None, "tokens": None, "outputs": {"logits": [None, None]}})
    fake.opened[0].runs.clear()
    for sizes in ((1, 8), (1, 7), (4, 16), (3, 16)):
        session(texts(*sizes), ["logits"])
    assert graphs_of(fake.opened[0]) == [1, -1, 2, -1]


def test_the_cpu_never_takes_the_place_of_the_gpu(folder, monkeypatch):
    fake_cuda_provider.install(monkeypatch, no_libraries=True)
    with pytest.raises(RuntimeError, match="does not run on CUDAExecutionProvider here, only on CPUExecutionProvider"):
        opened(folder, facts=None)
    with pytest.raises(RuntimeError, match="does not run on CUDAExecutionProvider here"):
        opened(folder)


@pytest.mark.parametrize(
    ("of_the_instance", "stated", "device"), [(None, {}, "0"), ("3", {}, "3"), ("3", {"device": 1}, "1")]
)
def test_the_gpu_is_that_of_triton_s_instance(folder, monkeypatch, of_the_instance, stated, device):
    fake = fake_cuda_provider.install(monkeypatch)
    if of_the_instance:
        monkeypatch.setenv(in_python_cuda.GPU, of_the_instance)
    session = opened(folder, facts=None, **stated)
    assert fake.opened[0].settings == {"device_id": device}, "without profiles of one size nothing is captured"
    session(texts(2, 5), ["logits"])


def test_shapes_that_contradict_each_other_are_the_client_s_mistake(folder):
    given = {"input_ids": np.ones((1, 4), np.int64), "attention_mask": np.ones((1, 5), np.int64)}
    with pytest.raises(ValueError, match="the model takes"):
        opened(folder, **ON_CPU)(given, ["logits"])
