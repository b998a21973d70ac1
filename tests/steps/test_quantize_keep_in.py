"""`quantize.keep_in`: in every way of quantization, the named layers keep their precision, and no other layer does."""

from __future__ import annotations

import convolutional
import graphs
import large_models
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from engine.errors import FieldError
from engine.kit.onnx import onnx_files
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.step import Source
from engine.steps.fuse import Fuse
from engine.steps.openvino_build import OpenvinoBuild
from engine.steps.quantize import Quantize

LAYER = "encoder.layer.1.output.dense"
NODE = "/model/encoder/layer.1/output/dense/MatMul"
QUERY = "encoder.layer.0.attention.self.query"
PARTS = [f"/model/encoder/layer.0/attention/self/{part}/MatMul" for part in ("query", "key", "value")]
_LOW = ("Integer", "IntegerToFloat", "NBits", "QAttention", "QEmbedLayerNormalization")


def products(folder):
    """Return the kind of operator of each node that multiplies, by its name as it was before quantization."""
    nodes = onnx_files.load_graph(folder).graph.node
    ends = ("MatMul", "Attention", "EmbedLayerNormalization", *_LOW)
    return {node.name.removesuffix("_quant"): node.op_type for node in nodes if node.op_type.endswith(ends)}


def changed(first, second):
    """Return what a second model computes in other operators than the first, as name -> the operators in both."""
    one, two = products(first), products(second)
    return {name: (one.get(name), two.get(name)) for name in {*one, *two} if one.get(name) != two.get(name)}


def both(tmp_path, graph, original, names, **options):
    """Quantize without and with names to keep; return the reports and the folders."""
    tmp_path.mkdir(exist_ok=True)
    step = Quantize(reduce_range=True, **options)
    plain = step.run(tmp_path / "plain", fused=graph)
    keeping = step.model_copy(update={"keep_in": {"fp32": tuple(names)}})
    return plain, keeping.run(tmp_path / "kept", fused=graph, shaped=original)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Return the folders of a tiny BERT as it was exported, and with fused operators."""
    folder = tmp_path_factory.mktemp("bert")
    exported = graphs.tiny("bert", "feature-extraction")
    Fuse().run(folder / "fused", shaped=exported)
    return exported, folder / "fused"


@pytest.mark.parametrize("fused", [False, True])
def test_dynamic_int8_keeps_exactly_the_named_layer(tmp_path, bert, fused):
    plain, report = both(tmp_path, bert[fused], bert[0], [LAYER])
    assert changed(tmp_path / "plain", tmp_path / "kept") == {NODE: ("MatMulIntegerToFloat", "MatMul")}
    assert report.quantized["MatMul"] == plain.quantized["MatMul"] - 1
    assert plain.kept == ()
    assert [(layer.name, layer.reason) for layer in report.kept] == [(NODE, f"`quantize.keep_in` names {LAYER}")]
    assert f"{NODE} not quantized: `quantize.keep_in` names {LAYER}" in report.reasons()


def test_dynamic_int8_keeps_all_of_a_fused_attention_and_one_product_of_one_that_is_not(tmp_path, bert):
    exported, fused = bert
    both(tmp_path / "fused", fused, exported, [QUERY], opset=20)
    assert changed(tmp_path / "fused/plain", tmp_path / "fused/kept") == {"Attention_0": ("QAttention", "Attention")}
    both(tmp_path / "plain", exported, exported, [QUERY])
    assert set(changed(tmp_path / "plain/plain", tmp_path / "plain/kept")) == {PARTS[0]}


def test_the_three_products_of_a_fused_attention_in_parts_are_kept(tmp_path, bert):
    exported, fused = bert
    _, report = both(tmp_path, fused, exported, [QUERY])
    differing = changed(tmp_path / "plain", tmp_path / "kept")
    assert len(differing) == 3
    assert set(differing.values()) == {("MatMulIntegerToFloat", "MatMul")}
    assert {layer.name for layer in report.kept} == set(differing)


def test_dynamic_int8_keeps_a_named_table(tmp_path):
    words = numpy_helper.from_array(np.random.default_rng(0).standard_normal((2000, 64)).astype(np.float32), "words")
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> net (int64[b, s] ids) => (float[b, s, 8] y) '
        "{ [look] rows = Gather(words, ids) [head] y = MatMul(rows, w) }"
    )
    model.graph.initializer.extend([words, graphs.weight("w", 64, 8)])
    source = graphs.write(tmp_path / "net", model)
    plain, report = both(tmp_path, source, source, ["look"])
    assert (plain.quantized, report.quantized) == ({"Gather": 1, "MatMul": 1}, {"MatMul": 1})


@pytest.mark.parametrize("way", ["int4 weights", "int8 weights"])
def test_weights_alone_keep_exactly_the_named_layer(tmp_path, bert, way):
    exported, _ = bert
    plain, report = both(tmp_path, exported, exported, [LAYER], way=way)
    assert changed(tmp_path / "plain", tmp_path / "kept") == {NODE: ("MatMulNBits", "MatMul")}
    assert report.quantized["MatMul"] == plain.quantized["MatMul"] - 1
    assert [layer.name for layer in report.kept] == [NODE]


def test_static_int8_keeps_exactly_the_named_convolution(tmp_path):
    source = convolutional.written(tmp_path / "net")
    samples = tmp_path / "samples.npz"
    np.savez(samples, image=np.concatenate([each["image"] for each in convolutional.images(8)]))
    step = Quantize(samples=Source(uri="samples.npz"), reduce_range=True)
    plain = step.run(tmp_path / "plain", fused=source, checkpoint=source, samples=samples)
    keeping = step.model_copy(update={"keep_in": {"fp32": ("point",)}})
    report = keeping.run(tmp_path / "kept", fused=source, checkpoint=source, samples=samples, shaped=source)
    assert report.quantized["Conv"] == plain.quantized["Conv"] - 1
    assert [each.reason for each in report.left if each not in plain.left] == ["`quantize.keep_in` names point"]


@pytest.fixture(scope="module")
def referenced(tmp_path_factory):
    """Return the folder of a tiny BERT with its reference."""
    folder = tmp_path_factory.mktemp("referenced")
    large_models.bert(folder, "bert")
    large_models.reference(folder)
    return folder


def lowered(folder, out, way, **keep_in):
    step = Quantize(way=way, keep_in=keep_in)
    return step.run(out, fused=folder / "shaped", reference=folder / "reference", shaped=folder / "shaped")


@pytest.mark.slow
def test_half_precision_keeps_all_nodes_of_the_named_module(referenced, tmp_path):
    plain = lowered(referenced, tmp_path / "plain", "fp16")
    report = lowered(referenced, tmp_path / "kept", "fp16", fp32=("encoder.layer.0.output.dense",))
    group = next(each for each in report.kept if "keep_in" in each.reason)
    assert dict(group.operators) == {"Add": 1, "MatMul": 1}
    assert group.reason == "`quantize.keep_in` names encoder.layer.0.output.dense"
    assert not any("keep_in" in each.reason for each in plain.kept)


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "in_fp32"), [("fp32", True), ("fp16", False)])
def test_int8_for_a_gpu_keeps_a_layer_in_fp32_or_fp16(referenced, tmp_path, precision, in_fp32):
    name = "encoder.layer.0.output.dense"
    report = lowered(referenced, tmp_path / "kept", "int8", **{precision: (name,)})
    left = [layer.name for layer in report.int8.left if layer.reason == f"`quantize.keep_in` names {name}"]
    assert left == ["/model/encoder/layer.0/output/dense/MatMul"]
    assert any(each.reason == f"`quantize.keep_in` names {name}" for each in report.rest.kept) == in_fp32


def test_a_wrong_name_is_refused_before_anything_is_quantized(tmp_path, bert):
    step = Quantize(keep_in={"fp32": ("encoder.layer.9",)})
    with pytest.raises(FieldError, match="no module and no node with the name"):
        step.run(tmp_path / "out", fused=bert[0], shaped=bert[0])
    assert not (tmp_path / "out").exists()


def test_the_recipe_gives_the_names_and_the_graph_that_has_them():
    def step(kind, **fields):
        fields = {"keep_in": {"fp32": [LAYER]}} | fields
        target = TargetSection(runtime=fields.pop("runtime", "onnxruntime"))
        model = ModelSection(source="model")
        return kind.for_recipe(Recipe(name="r", model=model, target=target, precision="int8", quantize=fields))

    for each in (step(Quantize), step(Quantize, weights_only=True)):
        assert each.options()["keep_in"] == {"fp32": [LAYER]}
        assert each.inputs_used() == ("fused", "shaped")
    assert step(OpenvinoBuild, runtime="openvino").options()["keep_in"] == {"fp32": [LAYER]}
    assert "keep_in" not in step(Quantize, keep_in={}).options()
    assert step(Quantize, keep_in={}).inputs_used() == ("fused",)
