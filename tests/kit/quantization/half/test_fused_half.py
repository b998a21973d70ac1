"""Fused graphs for ONNX Runtime's kernels in fp16: few Casts, and answers near PyTorch's for masks of every kind."""

import attention_masks
import eager
import graphs
import models
import numpy as np
import pytest

from engine.kit.inputs.cases import Case
from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import trials
from engine.kit.quantization.half import emulation, half_search
from engine.kit.quantization.half.half_search import GOAL
from engine.runtimes.onnxruntime import session as ort
from engine.steps.fuse import Fuse

TASK = "feature-extraction"
WORDS = len(models.vocabulary())
WIDE_SUMS = ("EmbedLayerNormalization", "LayerNormalization", "SkipLayerNormalization")


def lowered(tmp_path, source, *, words=WORDS, wide_sums=WIDE_SUMS, bias=True):
    """Return the report and the fp16 graph of an exported model, fused and converted as for the CUDA provider."""
    Fuse(residual="fused", attention_bias=bias).run(tmp_path / "fused", shaped=source)
    names = onnx_files.inputs(onnx_files.load_graph(tmp_path / "fused"))
    masked = [each for each in attention_masks.forty(words) if each.kind in {"full", "holed", "left-padded"}]
    cases = [Case(str(n), "", "sample", eager.read_by(names, each.inputs), {}) for n, each in enumerate(masked)]
    passes = Pipeline(ir_models.load(tmp_path / "fused"))
    return half_search.lowered(passes, cases, "fp16", tmp_path, wide_sums=wide_sums), passes.model


def check_against_pytorch(tmp_path, checkpoint, model, words):
    """Run the emulated fp16 graph with forty masks; texts with a visible position answer as in PyTorch."""
    emulated = model.clone()
    emulation.emulate(emulated)
    session = trials.opened(emulated, tmp_path)
    names = {value.name for value in session.get_inputs()}
    for masked, expected in eager.answers(checkpoint, attention_masks.forty(words)):
        got = ort.run(session, eager.read_by(names, masked.inputs))["last_hidden_state"]
        assert np.isfinite(got).all(), masked.kind
        visible = masked.inputs["attention_mask"].any(axis=1)
        for one, other in zip(expected[visible], got[visible], strict=True):
            cosine = float((one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other))
            assert cosine > GOAL, (masked.kind, cosine)


def both_casts(node):
    producers = [value.producer() for value in node.inputs if value is not None]
    return node.op_type == "Cast" and any(each is not None and each.op_type == "Cast" for each in producers)


@pytest.mark.parametrize(
    ("architecture", "casts", "islands"), [("bert", 4, 11), ("distilbert", 3, 10), ("roberta", 4, 12)]
)
def test_an_encoder_in_fp16_has_few_casts_and_answers_as_pytorch_for_forty_masks(
    tmp_path, architecture, casts, islands
):
    source = graphs.tiny(architecture, TASK)
    report, model = lowered(tmp_path, source)
    assert report.kept == ()
    assert report.graph.casts == casts
    assert not any(both_casts(node) for node in model.graph), "a Cast undoes what another one did"
    check_against_pytorch(tmp_path, source.parent / "checkpoint", model, WORDS)
    before, _ = lowered(tmp_path, source, wide_sums=(), bias=False)
    assert before.graph.casts == islands


@pytest.mark.parametrize(("mean", "tries", "in_fp32"), [(0, 1, {}), (2000, 2, {"SkipLayerNormalization": 1})])
def test_normalizations_return_to_fp32_where_the_first_try_misses_its_goal(tmp_path, mean, tries, in_fp32):
    """Numbers near 2000 are 1 apart in fp16, so a deviation of 0.1 is lost."""
    generator = np.random.default_rng(0)
    tensors = {name: generator.normal(mean, 0.1, (2, 8, 64)).astype(np.float32) for name in ("x", "skip")}
    cases = [Case("one", "", "sample", tensors, {})]
    passes, as_islands = (Pipeline(ir_models.of(graphs.residual())) for _ in range(2))
    report = half_search.lowered(passes, cases, "fp16", tmp_path, wide_sums=WIDE_SUMS)
    assert len(report.path) == tries
    assert report.path[0].fp32 == 0
    assert (report.path[0].cosine >= GOAL) == (tries == 1)
    assert report.cosine.worst >= GOAL
    assert {name: count for group in report.kept for name, count in group.operators.items()} == in_fp32
    assert half_search.lowered(as_islands, cases, "fp16", tmp_path).path[-1].fp32 == 1
