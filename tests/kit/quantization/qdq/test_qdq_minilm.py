"""Q/DQ of real weights: all-MiniLM-L6-v2 on texts that it was not calibrated on."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import engines
import numpy as np
import pytest
from onnx import checker

from engine.kit.accuracy import outputs
from engine.kit.inputs import samples
from engine.kit.inputs.cases import Case
from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization.half import half_search
from engine.kit.quantization.qdq import qdq
from engine.runtimes.onnxruntime import session as ort
from engine.steps.shape_infer import ShapeInfer

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_qdq.py quantizes small models")]
TEXTS = Path(__file__).parents[4] / "recipes" / "samples"


@pytest.fixture(scope="module")
def minilm(minilm_checkpoint, minilm_exported, tmp_path_factory):
    """Return the unfused graph's directory, and a reader of samples."""
    shaped = tmp_path_factory.mktemp("minilm") / "shaped"
    ShapeInfer().run(shaped, exported=minilm_exported)
    model_inputs = onnx_files.inputs(onnx_files.load_graph(shaped))
    return shaped, lambda name: [case.inputs for case in samples.read(TEXTS / name, minilm_checkpoint, model_inputs)]


def embedded(directory, inputs):
    session = ort.session(directory, threads=1, level="disabled")
    rows = []
    for sample in inputs:
        hidden = ort.run(session, sample)["last_hidden_state"]
        rows.append(outputs.pool(hidden, sample["attention_mask"], "mean")[0])
    return np.array(rows)


@pytest.fixture(scope="module")
def quantized(minilm, tmp_path_factory):
    """Return a maker of quantized graphs: each kind is calibrated once for all tests."""
    shaped, read = minilm

    @cache
    def make(kind):
        folder = tmp_path_factory.mktemp(kind)
        passes, report = qdq.quantize(shaped, read("calibration.jsonl"), kind, folder)
        ir_models.save(passes.model, folder)
        checker.check_model(onnx_files.load(folder), full_check=True)
        return folder, report

    return make


@pytest.fixture(scope="module")
def plain(minilm, tmp_path_factory):
    """Return the directory of the graph in fp16 alone."""
    folder = tmp_path_factory.mktemp("plain")
    in_half(minilm, minilm[0], folder / "plain")
    return folder / "plain"


def in_half(minilm, source, out):
    passes = Pipeline(ir_models.load(source))
    half_search.lowered(passes, few(minilm), "fp16", out.parent)
    ir_models.save(passes.model, out)


def few(minilm):
    return [Case(str(n), "", "sample", inputs, {}) for n, inputs in enumerate(minilm[1]("calibration.jsonl")[:16])]


@pytest.mark.parametrize(("kind", "least"), [("int8", 0.99), ("fp8", 0.98), ("int4", 0.85)])
def test_unseen_texts_keep_their_embeddings_with_most_of_the_work_quantized(minilm, quantized, kind, least):
    shaped, read = minilm
    folder, report = quantized(kind)
    unseen = read("sentences.jsonl")[::3]
    cosines = (embedded(shaped, unseen) * embedded(folder, unseen)).sum(axis=1)
    print(f"{kind}: share {report.quantized.share:.1%}, cosine {cosines.mean():.5f} mean, {cosines.min():.5f} worst")
    assert report.quantized.share >= 0.7
    assert cosines.min() >= least


@pytest.mark.parametrize(("kind", "devices"), [("int8", ("T4", "RTX 5090")), ("fp8", ("L4",)), ("int4", ("A10",))])
def test_tensorrt_rtx_builds_engines_of_it_with_fp16_around(minilm, quantized, plain, tmp_path, *, kind, devices):
    in_half(minilm, quantized(kind)[0], tmp_path / "half")
    profile = {"batch": [1, 8, 16], "sequence": [8, 64, 128]}
    for device in devices:
        sizes = [engines.rtx_bytes(model, device, profile) for model in (tmp_path / "half", plain)]
        print(f"{kind} for {device}: {sizes[0] / 1e6:.1f} MB, fp16 {sizes[1] / 1e6:.1f} MB")
        assert sizes[0] < sizes[1]
