import json
import os
from pathlib import Path

import graphs
import numpy as np
import onnx
import pytest
import step_process

from engine.kit.accuracy import equivalence
from engine.kit.onnx import mapped_weights, onnx_files
from engine.kit.onnx.passes import attention_bias
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.runtimes.onnxruntime import fusion
from engine.steps.fuse import Fuse


def fuse(tmp_path, model, **options):
    if not isinstance(model, Path):
        model = graphs.write(tmp_path / "shaped", model)
    report = Fuse(**options).run(tmp_path / "fused", shaped=model)
    return report, tmp_path / "fused"


def operators(directory):
    return [node.op_type for node in onnx_files.nodes(onnx_files.load_graph(directory))]


@pytest.mark.parametrize(
    ("architecture", "fused"),
    [
        ("bert", {"Attention": 2, "EmbedLayerNormalization": 1}),
        ("distilbert", {"Attention": 2, "EmbedLayerNormalization": 1}),
        ("electra", {"Attention": 2, "EmbedLayerNormalization": 1}),
        ("roberta", {"Attention": 2}),
        ("xlm-roberta", {"Attention": 2}),
        ("albert", {"Attention": 1, "FastGelu": 2}),
        ("mpnet", {}),
        ("deberta-v2", {}),
    ],
)
def test_an_architecture_is_fused_as_far_as_the_optimizer_knows_it(tmp_path, architecture, fused):
    source = graphs.tiny(architecture)
    before = (source / "model.onnx").read_bytes()
    report, out = fuse(tmp_path, source)
    assert report.fused == fused
    assert list(report.nodes) == [len(operators(source)), len(operators(out))]
    assert "SkipLayerNormalization" not in operators(out), "on a CPU, residual additions stay apart"
    assert equivalence.difference(source, out) is None
    assert os.listdir(tmp_path) == ["fused"]
    assert (source / "model.onnx").read_bytes() == before
    if fused:
        assert report.nodes[1] < report.nodes[0] / 2
        assert sorted(os.listdir(out)) == ["model.onnx", "session.json"]
        assert json.loads((out / "session.json").read_text())["graph_optimization_level"] == "basic"
    else:
        assert report.unfused.startswith("nothing to fuse")
        assert (out / "model.onnx").samefile(source / "model.onnx")


def test_on_a_gpu_residual_additions_are_fused_too(tmp_path):
    report, out = fuse(tmp_path, graphs.tiny("bert"), residual="fused")
    assert report.fused == {"Attention": 2, "BiasGelu": 2, "EmbedLayerNormalization": 1, "SkipLayerNormalization": 4}
    assert not (out / "session.json").exists()
    assert equivalence.difference(graphs.tiny("bert"), out) is None


@pytest.mark.slow
@pytest.mark.whole("test_an_architecture_is_fused_as_far_as_the_optimizer_knows_it")
def test_minilm_becomes_six_attentions_and_an_embedding(tmp_path, minilm_exported):
    report, out = fuse(tmp_path, minilm_exported)
    assert report.fused == {"Attention": 6, "EmbedLayerNormalization": 1}
    assert report.nodes[1] == 76
    heads = {a.i for n in onnx_files.load_graph(out).graph.node for a in n.attribute if a.name == "num_heads"}
    assert heads == {12}


@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.sample(2)
def test_the_number_of_heads_is_read_from_the_graph(tmp_path, heads):
    import models

    from engine.steps.export import Export

    source = models.checkpoint(tmp_path / "checkpoint", task="text-classification", num_attention_heads=heads)
    Export(task="text-classification").run(tmp_path / "exported", checkpoint=source)
    assert fusion.attention_sizes(onnx_files.load(tmp_path / "exported")) == (heads, 32)
    report, out = fuse(tmp_path, tmp_path / "exported")
    assert report.fused["Attention"] == 2
    assert equivalence.difference(tmp_path / "exported", out) is None


def test_sizes_that_the_graph_does_not_tell_are_left_to_the_optimizer():
    assert fusion.attention_sizes(graphs.layers()) == (0, 0)


@pytest.mark.parametrize(
    ("first", "start", "dropped"), [(0, 0, True), (2, 0, False), (0, 2, False)], ids=["counted", "shifted", "cut later"]
)
def test_positions_are_dropped_only_where_they_count_from_zero(first, start, dropped):
    # RoBERTa counts from 2; an embedding that is given no positions counts from 0.
    model = graphs.parsed(
        "(int64[n] ids, float[4] scale, float[4] shift) => (float[] y) { cut = Slice(table, start, end, axis) "
        "positions = Cast<to = 6>(cut) "
        "y = com.microsoft.EmbedLayerNormalization(ids, , words, places, , scale, shift, , positions) }",
        domains=("com.microsoft",), words=(8, 4), places=(8, 4), axis=np.array([1]),
        table=np.array([range(first, first + 6)]), start=np.array([start]), end=np.array([start + 3]),
    )  # fmt: skip
    fusion._drop_counted_positions(model)
    assert model.graph.node[-1].input[8] == ("" if dropped else "positions")


@pytest.mark.parametrize(
    "make", [graphs.convolutions, graphs.recurrent, graphs.loop, graphs.choice, graphs.layers], ids=lambda m: m.__name__
)
def test_what_is_no_transformer_is_handed_on_with_a_word(tmp_path, capsys, make):
    report, out = fuse(tmp_path, make())
    assert report.fused == {}
    assert report.unfused == "nothing to fuse: this is no transformer"
    assert report.nodes[0] == report.nodes[1]
    assert os.listdir(out) == ["model.onnx"]
    assert (out / "model.onnx").samefile(tmp_path / "shaped/model.onnx")
    assert "not fused: nothing to fuse: this is no transformer" in capsys.readouterr().out


def test_a_fused_model_that_answers_otherwise_is_never_handed_on(tmp_path, monkeypatch, capsys):
    """The optimizer's own default, one length per row instead of the mask, is wrong for left-padded masks."""
    from onnxruntime.transformers.fusion_options import FusionOptions

    monkeypatch.setattr(FusionOptions, "use_raw_attention_mask", lambda *_: None)
    source = graphs.tiny("bert", "feature-extraction")
    report, out = fuse(tmp_path, source)
    assert report.fused == {}
    assert report.unfused.startswith("the fused model is not the same as the original: last_hidden_state differs by")
    assert report.unfused.endswith("with left-padded inputs")
    assert (out / "model.onnx").samefile(source / "model.onnx")
    assert not (out / "session.json").exists()
    assert "not the same as the original" in capsys.readouterr().out


def test_attention_keeps_its_mask_where_a_bias_answers_otherwise(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(attention_bias, "HIDDEN", -1.0)
    report, out = fuse(tmp_path, graphs.tiny("bert", "feature-extraction"), residual="fused", attention_bias=True)
    assert (report.fused["Attention"], report.biased) == (2, 0)
    masks = {node.input[3] for node in onnx_files.load_graph(out).graph.node if node.op_type == "Attention"}
    assert masks != {""}
    output = capsys.readouterr().out
    assert "not the same with a bias in place of the mask: last_hidden_state differs by" in output


@pytest.mark.parametrize("architecture", ["mpnet", "deberta-v2"])
def test_a_graph_without_fused_attention_is_the_same_with_and_without_a_bias(tmp_path, architecture):
    source = graphs.tiny(architecture)
    for name in ("bias", "plain"):
        (tmp_path / name).mkdir()
    report, out = fuse(tmp_path / "bias", source, residual="fused", attention_bias=True)
    _, plain = fuse(tmp_path / "plain", source, residual="fused")
    assert report.biased == 0
    assert (out / "model.onnx").read_bytes() == (plain / "model.onnx").read_bytes()


def test_an_optimizer_that_breaks_down_leaves_the_model_as_it_was(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise AssertionError("3 != 4")

    monkeypatch.setattr(fusion, "fuse", broken)
    report, out = fuse(tmp_path, graphs.tiny("bert"))
    assert report.fused == {}
    assert report.unfused.startswith(
        "ONNX Runtime's optimizer gave up on this graph: AssertionError: 3 != 4 (raised by "
    )
    assert (out / "model.onnx").samefile(graphs.tiny("bert") / "model.onnx")


def test_half_precision_and_quantized_weights_are_not_taken_apart(tmp_path):
    def shaped(name, convert):
        model = onnx_files.load(graphs.tiny("bert"))
        weight = next(tensor for tensor in model.graph.initializer if "MatMul" in tensor.name)
        values = convert(onnx.numpy_helper.to_array(weight))
        weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
        return graphs.write(tmp_path / name, model)

    for kind, word in (("float16", "half precision"), ("int8", "quantized already (INT8 weights)")):
        report = Fuse().run(tmp_path / f"{kind}-fused", shaped=shaped(kind, lambda v, k=kind: v.astype(k)))
        assert report.fused == {}
        assert word in report.unfused


def test_bytes_are_the_same_in_another_directory_process_and_hash_seed_where_no_torch_is(tmp_path):
    # The optimizer keeps counters: the second run in one process must not notice the first.
    assert len(step_process.digests(Fuse, tmp_path, shaped=graphs.tiny("roberta"))) == 1


def recipe(**target):
    return Recipe(name="a", model=ModelSection(source="x"), target=TargetSection(**target))


def test_it_is_wanted_for_onnx_runtimes_own_kernels_only():
    assert Fuse.for_recipe(recipe()) == Fuse(residual="apart")
    assert Fuse.for_recipe(recipe(isa="avx2").model_copy(update={"precision": "int8"})) == Fuse()
    assert Fuse.for_recipe(recipe().model_copy(update={"precision": "int4"})) is None, "its weights are in blocks"
    assert Fuse.for_recipe(recipe(device="T4")) == Fuse(residual="fused")
    assert Fuse.for_recipe(recipe(device="T4", provider="cpu")) == Fuse(residual="apart")
    assert Fuse.for_recipe(recipe(device="T4").model_copy(update={"precision": "fp16"})).attention_bias
    assert Fuse.for_recipe(recipe(device="T4", provider="tensorrt")) is None
    assert Fuse.for_recipe(recipe(device="T4", runtime="tensorrt")) is None
    assert Fuse().options() == {"residual": "apart"}
    assert Fuse(attention_bias=True).options() == {"residual": "apart", "attention_bias": True}


def test_fused_weights_are_in_a_file_while_the_optimizer_works(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_weights, "LEAST", 1024)
    model = fusion.fuse(graphs.tiny("bert"), tmp_path / "scratch", skip_layer_norm=False)
    fused = {node.input[1] for node in model.graph.node if node.op_type == "Attention"}
    large = {tensor.name for tensor in model.graph.initializer if mapped_weights.extent(tensor) is not None}
    assert len(fused) == 2
    assert fused <= large
