import json

import graphs
import models
import numpy as np
import onnx
import pytest

from engine.kit.onnx import onnx_files
from engine.kit.triton import embedding
from engine.kit.triton.served.embed import Work
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime import session_options


def settings(*modes, normalize=False):
    layers = [{"kind": "Normalize", "activation": "Identity", "residual": False}] if normalize else []
    return {"modes": modes, "skip": 0, "layers": layers, "truncate_dim": None}


@pytest.fixture(scope="module")
def model():
    return graphs.tiny("bert", task="feature-extraction")


def checkpoint(directory, modes, *, normalize):
    """Write the modules that sentence-transformers saves with a model."""
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    listed = [{"path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
              for n, kind in enumerate(kinds)]  # fmt: skip
    (directory / "1_Pooling").mkdir(parents=True)
    (directory / "modules.json").write_text(json.dumps(listed))
    (directory / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": modes}))
    return directory


@pytest.mark.parametrize("mode", ["mean", "cls"])
@pytest.mark.parametrize("normalize", [True, False], ids=["of length 1", "as long as it is"])
def test_the_graph_gives_the_vector_that_the_python_backend_would(model, tmp_path, mode, normalize):
    folder = embedding.pooled(model, checkpoint(tmp_path / "c", mode, normalize=normalize), tmp_path / "out")
    onnx.checker.check_model(onnx_files.load(folder), full_check=True)
    rng = np.random.default_rng(0)
    mask = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0]])
    ids = rng.integers(1, len(models.vocabulary("bert")), mask.shape)
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    answers = ort.run(ort.session(folder, threads=1), feed)
    work = Work(tmp_path, settings(mode, normalize=normalize))
    expected = work({"last_hidden_state": answers["last_hidden_state"], "attention_mask": mask})["sentence_embedding"]
    assert np.abs(answers["sentence_embedding"] - expected).max() < 1e-6
    if normalize:
        assert np.allclose(np.linalg.norm(answers["sentence_embedding"][:3], axis=1), 1)


def test_the_embedding_can_take_the_place_of_the_hidden_states(model, tmp_path):
    source = checkpoint(tmp_path / "c", "mean", normalize=True)
    both = embedding.pooled(model, source, tmp_path / "both")
    alone = embedding.pooled(model, source, tmp_path / "alone", with_states=False)
    onnx.checker.check_model(onnx_files.load(alone), full_check=True)
    ids = np.random.default_rng(0).integers(1, len(models.vocabulary("bert")), (2, 6))
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    answers = ort.run(ort.session(alone, threads=1), feed)
    assert list(answers) == ["sentence_embedding"]
    with_states = ort.run(ort.session(both, threads=1), feed)["sentence_embedding"]
    assert np.abs(answers["sentence_embedding"] - with_states).max() < 1e-6


@pytest.mark.parametrize("modes", ["max", ["cls", "mean"]])
def test_what_the_graph_cannot_do_is_left_to_the_python_backend(model, tmp_path, modes):
    assert embedding.pooled(model, checkpoint(tmp_path / "c", modes, normalize=True), tmp_path / "out") == model
    assert embedding.pooled(model, tmp_path, tmp_path / "out") == model, "it is no sentence-transformer"


def test_settings_and_external_data_come_along(model, tmp_path):
    source = tmp_path / "source"
    onnx_files.save(onnx_files.load(model), source, threshold=0)
    session_options.save(source, level="basic")
    folder = embedding.pooled(source, checkpoint(tmp_path / "c", "mean", normalize=True), tmp_path / "out")
    assert {path.name for path in folder.iterdir()} == {path.name for path in source.iterdir()}
    assert session_options.read(folder) == session_options.read(source)
