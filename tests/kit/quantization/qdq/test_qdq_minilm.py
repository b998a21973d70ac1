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
from engine.recipe.schema import Recipe
from engine.runtimes.onnxruntime import session as ort
from engine.steps.shape_infer import ShapeInfer

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_qdq.py quantizes small models")]
WHOLE = pytest.mark.whole
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


@pytest.mark.parametrize(
    ("kind", "least"), [("int8", 0.99), pytest.param("fp8", 0.98, marks=WHOLE), pytest.param("int4", 0.85, marks=WHOLE)]
)
def test_unseen_texts_keep_their_embeddings_with_most_of_the_work_quantized(minilm, quantized, kind, least):
    shaped, read = minilm
    folder, report = quantized(kind)
    unseen = read("sentences.jsonl")[::3]
    cosines = (embedded(shaped, unseen) * embedded(folder, unseen)).sum(axis=1)
    print(f"{kind}: share {report.quantized.share:.1%}, cosine {cosines.mean():.5f} mean, {cosines.min():.5f} worst")
    assert report.quantized.share >= 0.7
    assert cosines.min() >= least


@pytest.mark.parametrize(
    ("kind", "devices"),
    [
        pytest.param("int8", ("T4", "RTX 5090"), marks=WHOLE),
        pytest.param("fp8", ("L4",), marks=WHOLE),
        pytest.param("int4", ("A10",), marks=WHOLE),
    ],
)
def test_tensorrt_rtx_builds_engines_of_it_with_fp16_around(minilm, quantized, plain, tmp_path, *, kind, devices):
    pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")
    in_half(minilm, quantized(kind)[0], tmp_path / "half")
    for device in devices:
        models = (tmp_path / "half", plain)
        sizes = [engine(model, device, tmp_path / f"{model.name} {device}") for model in models]
        print(f"{kind} for {device}: {sizes[0] / 1e6:.1f} MB, fp16 {sizes[1] / 1e6:.1f} MB")
        assert sizes[0] < sizes[1]


def engine(model, device, out):
    """Build a TensorRT-RTX engine for a GPU that is not here; return its bytes."""
    profile = {"batch": {"min": 1, "opt": 8, "max": 16}, "sequence": {"min": 8, "opt": 64, "max": 128}}
    target = {"device": device, "runtime": "tensorrt-rtx"}
    fields = {"name": "m", "model": {"source": "m"}, "target": target, "precision": "fp16", "profiles": [profile]}
    out.mkdir()
    return engines.of(Recipe.model_validate(fields)).run(out / "out", checked=model).bytes
