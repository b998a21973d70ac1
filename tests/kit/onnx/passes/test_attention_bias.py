"""A fused attention with a bias answers as PyTorch for masks of every kind, also where all positions are hidden."""

import attention_masks
import eager
import graphs
import models
import numpy as np
import onnx
import onnx_ir as ir
import pytest

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.passes import attention_bias
from engine.runtimes.onnxruntime import session as ort
from engine.steps.fuse import Fuse

TASK = "feature-extraction"
WORDS = len(models.vocabulary())
MASKS = attention_masks.forty(WORDS)


def fused(tmp_path, source):
    report = Fuse(residual="fused", attention_bias=True).run(tmp_path / "fused", shaped=source)
    return report, tmp_path / "fused"


def attentions(directory):
    return [node for node in onnx_files.load_graph(directory).graph.node if node.op_type == "Attention"]


def differences(checkpoint, directory, masks):
    """Return the largest difference from PyTorch by the kind of mask, as a share of the largest value."""
    session = ort.session(directory, threads=1)
    names = {value.name for value in session.get_inputs()}
    by_kind = {}
    for masked, expected in eager.answers(checkpoint, masks):
        got = ort.run(session, eager.read_by(names, masked.inputs))["last_hidden_state"]
        share = float(np.abs(got - expected).max() / np.abs(expected).max())
        by_kind[masked.kind] = max(by_kind.get(masked.kind, 0.0), share)
    return by_kind


def test_there_are_forty_masks_of_eight_kinds_and_five_shapes():
    assert len(MASKS) == 40
    assert {masked.kind for masked in MASKS} == set(attention_masks.KINDS)
    assert {masked.inputs["attention_mask"].shape for masked in MASKS} == set(attention_masks.SHAPES)
    assert {masked.kind for masked in MASKS if masked.hides_rows} == {"a hidden row", "all hidden"}


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "electra", "roberta", "xlm-roberta", "albert"])
@pytest.mark.sample(2)
def test_fused_attention_answers_as_pytorch_for_forty_masks(tmp_path, architecture):
    source = graphs.tiny(architecture, TASK)
    report, out = fused(tmp_path, source)
    assert report.biased == report.fused["Attention"] == len(attentions(out))
    assert {node.input[5] for node in attentions(out)} == {"attention_bias"}
    by_kind = differences(source.parent / "checkpoint", out, MASKS)
    assert set(by_kind) == set(attention_masks.KINDS)
    assert max(by_kind.values()) < 1e-4, by_kind


def test_a_raw_mask_is_wrong_where_all_positions_are_hidden(tmp_path):
    """The bias is more than a faster form: ONNX Runtime adds -10000 for a raw mask, which swallows no score."""
    source = graphs.tiny("bert", TASK)
    Fuse(residual="fused").run(tmp_path / "raw", shaped=source)
    by_kind = differences(source.parent / "checkpoint", tmp_path / "raw", MASKS)
    assert by_kind["all hidden"] > 1e-3
    assert max(share for kind, share in by_kind.items() if "hidden" not in kind) < 1e-4


def biased(mask_type="int64", mask_shape="[batch, sequence]", extra="", *, operator="Attention"):
    """Return a model of two attentions that share a mask, after the pass, and the number of changed nodes."""
    cast, mask = ("", "mask") if mask_type == "int32" else ("mask_int32 = Cast<to = 6>(mask)", "mask_int32")
    layers = " ".join(
        f"[{name}] {end} = com.microsoft.{operator}<num_heads = 2>({begin}, weight, bias, {mask}{extra})"
        for name, begin, end in (("one", "x", "a"), ("two", "a", "y"))
    )
    shape = "float[batch, sequence, 4]"
    text = f"({shape} x, {mask_type}{mask_shape} mask) => ({shape} y) {{ {cast} {layers} }}"
    model = graphs.parsed(text, opset=20, domains=("com.microsoft",), weight=(4, 12), bias=(12,))
    changed = ir_models.of(model)
    return changed, attention_bias.from_masks(changed)


def operators(model: ir.Model):
    return [node.op_type for node in model.graph]


def test_six_nodes_before_the_first_layer_make_one_bias_for_all_layers():
    model, count = biased()
    assert count == 2
    assert operators(model) == ["Cast", "Where", "Mul", "Unsqueeze", "Unsqueeze", "Add", "Attention", "Attention"]
    assert model.graph[0].inputs[0].name == "mask", "the Cast to int32 is gone"
    onnx.checker.check_model(ir_models.proto(model))


def test_a_mask_without_a_cast_becomes_a_bias_too():
    model, count = biased("int32")
    assert count == 2
    assert operators(model)[0] == "Cast"


def test_any_number_but_zero_is_visible(tmp_path):
    model, _ = biased()
    ir_models.save(model, tmp_path)
    session = ort.session(tmp_path)
    x, mask = np.random.default_rng(0).random((1, 3, 4), np.float32), np.array([[1, 1, 0]])
    expected, got = (ort.run(session, {"x": x, "mask": each})["y"] for each in (mask, mask * 7))
    assert np.array_equal(expected, got)


@pytest.mark.parametrize(
    "changes",
    [
        {"mask_shape": "[batch]"},
        {"mask_shape": "[batch, sequence, sequence]"},
        {"mask_shape": "[]"},
        {"extra": ", past"},
        {"extra": ", , own"},
        {"operator": "DecoderAttention"},
    ],
    ids=["lengths", "a row for each position", "shape unknown", "past", "own bias", "another operator"],
)
def test_other_attention_stays_as_it_is(changes):
    model, count = biased(**changes)
    assert count == 0
    assert operators(model) == ["Cast", *[changes.get("operator", "Attention")] * 2]
