"""Names of modules and nodes lead to the same layers before and after operators are fused, folded and split."""

import graphs
import onnx
import pytest
from onnx import helper

from engine.errors import Exit, FieldError
from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.passes import linear_layers
from engine.kit.onnx.surgery import name_nodes
from engine.kit.quantization import keep_in
from engine.steps.fuse import Fuse

QUERY = "encoder.layer.0.attention.self.query"


def kept(names, original, folder):
    """Return the names of the kept nodes of a graph that have a stored matrix."""
    model = ir_models.load(folder)
    name_nodes(model)
    return [layer.name for layer in keep_in.of(names, original).layers(model)]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Return the folders of a tiny BERT as it was exported, and with fused operators."""
    folder = tmp_path_factory.mktemp("bert")
    exported = graphs.tiny("bert", "feature-extraction")
    Fuse().run(folder / "fused", shaped=exported)
    return exported, folder / "fused"


def test_a_name_of_a_module_leads_to_its_layer_before_and_after_fusion(bert):
    exported, fused = bert
    assert kept(["encoder.layer.1.output.dense"], exported, exported) == ["/model/encoder/layer.1/output/dense/MatMul"]
    assert kept(["encoder.layer.1.output.dense"], exported, fused) == ["/model/encoder/layer.1/output/dense/MatMul"]


def test_a_fused_attention_is_kept_for_each_of_its_modules(bert):
    exported, fused = bert
    assert kept([QUERY], exported, exported) == ["/model/encoder/layer.0/attention/self/query/MatMul"]
    for part in ("query", "key", "value"):
        assert kept([QUERY.replace("query", part)], exported, fused) == ["Attention_0"]
    assert kept(["encoder.layer.0.attention.output.dense"], exported, fused) == [
        "/model/encoder/layer.0/attention/output/dense/MatMul"
    ]


def test_a_fused_embedding_is_kept_for_each_of_its_tables_and_keeps_no_attention(bert):
    exported, fused = bert
    for table in ("word_embeddings", "position_embeddings"):
        assert kept([f"embeddings.{table}"], exported, fused) == ["EmbedLayerNormalization_0"]
    assert len(kept(["embeddings.*"], exported, exported)) == 3


def test_a_module_keeps_everything_inside_it_and_a_pattern_all_that_it_matches(bert):
    exported, fused = bert
    layer = [f"/model/encoder/layer.1/{each}/MatMul" for each in ("attention/output/dense", "intermediate/dense")]
    layer.append("/model/encoder/layer.1/output/dense/MatMul")
    assert kept(["encoder.layer.1"], exported, fused) == ["Attention_1", *layer]
    assert kept(["encoder.layer.*.output.dense"], exported, fused) == [
        f"/model/encoder/layer.{number}/{each}/MatMul"
        for number in range(2)
        for each in ("attention/output/dense", "output/dense")
    ]


def test_the_parts_of_a_split_layer_are_kept_by_the_name_of_the_whole(tmp_path):
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> net (float[b, 4] x) => (float[b, 8] y) '
        "{ [first] a = Relu(x) [head] y = Gemm<transB = 1>(a, w, bias) }"
    )
    model.graph.initializer.extend([graphs.weight("w", 8, 4), graphs.weight("bias", 8)])
    changed = ir_models.of(onnx_files.copied(model))
    linear_layers.split(changed)
    assert set(keep_in.NamedLayers(("head",), model).nodes(changed)) == {"head", "head_Add"}
    assert set(keep_in.NamedLayers(("first",), model).nodes(changed)) == {"first"}


def test_a_node_of_an_own_file_is_kept_by_its_name_or_by_that_of_its_output(tmp_path):
    source = graphs.write(tmp_path / "net", graphs.layers())
    assert kept(["a"], source, source) == ["MatMul_0"]
    assert kept(["y"], source, source) == ["Gemm_3"]
    assert kept([], source, source) == []


def test_the_newer_exporter_notes_modules_as_metadata():
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "node_linear")
    scopes = "['', 'model', 'model.encoder', 'model.encoder.layer.0', 'linear']"
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
    ends = [("x", graphs.FLOAT, [1, 2])], [("y", graphs.FLOAT, [1, 2])]
    model = graphs.graph([node], *ends, [graphs.weight("w", 2, 2)])
    for name in ("encoder", "encoder.layer.0", "node_linear"):
        assert keep_in.NamedLayers((name,), model).nodes(ir_models.of(onnx_files.copied(model)))


def test_a_name_that_nothing_has_is_refused_with_the_nearest(bert):
    exported, _ = bert
    keep_in.refuse_unknown({"fp32": (QUERY, "*.dense")}, exported)
    with pytest.raises(FieldError) as info:
        keep_in.refuse_unknown({"fp32": (QUERY, "encoder.layer.0.attention.self.qury")}, exported)
    error = info.value
    assert error.path == ("quantize", "keep_in", "fp32", 1)
    assert error.exit is Exit.USAGE
    assert error.what == "the model has no module and no node with the name 'encoder.layer.0.attention.self.qury'"
    assert error.hint == f"did you mean `{QUERY}`?"
    with pytest.raises(FieldError) as info:
        keep_in.refuse_unknown({"fp16": ("zzz",)}, exported)
    assert info.value.hint.startswith("names are such as `")
