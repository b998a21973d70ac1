"""Layers have the names that `keep_in` takes, each keeps itself alone, and the one that loses most comes first."""

import graphs
import onnx
import pytest

from engine.kit.accuracy.layers import ComparedLayer
from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.surgery import name_nodes
from engine.kit.quantization import keep_in
from engine.tuning import suspects


@pytest.fixture(scope="module")
def bert():
    folder = graphs.tiny("bert", "feature-extraction")
    return folder, onnx_files.load_graph(folder).graph


def compared(tensor, lost):
    return ComparedLayer(tensor, "MatMul", "float32", 1 - lost, 0.0, lost)


def test_a_layer_has_the_name_of_its_module_or_else_of_its_node(bert):
    folder, graph = bert
    layers = suspects.layers_of(folder, multiplying=True)
    operators = {name: [node.op_type for node in graph.node if node.output[0] in of] for name, of in layers.items()}
    assert operators["encoder.layer.1.output.dense"] == ["MatMul"]
    assert operators["embeddings.word_embeddings"] == ["Gather"]
    # The product of queries and keys lies in a module with other modules in it.
    assert operators["/model/encoder/layer.0/attention/self/MatMul"] == ["MatMul"]
    assert not any("LayerNorm" in name for name in layers)
    assert len(layers) == 2 * (6 + 2) + 3


def test_layers_that_are_kept_already_are_left_out(bert):
    folder, _ = bert
    every = suspects.layers_of(folder, multiplying=True)
    left = suspects.layers_of(folder, ["encoder.layer.0", "*.word_embeddings"], multiplying=True)
    gone = every.keys() - left.keys()
    assert "embeddings.word_embeddings" in gone
    assert len(gone) == 6 + 2 + 1
    assert all("layer.0" in name for name in gone - {"embeddings.word_embeddings"})


def test_each_name_keeps_exactly_the_nodes_of_its_layer(bert):
    folder, graph = bert
    model = ir_models.load(folder)
    name_nodes(model)
    layers = suspects.layers_of(folder, multiplying=True)
    keep_in.refuse_unknown({"fp32": list(layers)}, folder)
    products = {node.name for node in graph.node if node.op_type in {"MatMul", "Gather"}}
    for name, tensors in layers.items():
        kept = keep_in.of([name], folder).nodes(model).keys() & products
        assert kept == {node.name for node in graph.node if tensors.intersection(node.output)} & products


def test_a_half_precision_may_be_spoiled_by_any_operator(bert):
    folder, _ = bert
    names = suspects.layers_of(folder, multiplying=False).keys()
    assert "encoder.layer.0.output.LayerNorm" in names
    assert any(name.endswith("/attention/self/Softmax") for name in names)
    assert not any(name.rpartition("/")[2].startswith(("Constant", "Shape")) for name in names)


def test_what_a_layer_loses_may_show_in_the_next_tensor_that_both_models_have(tmp_path):
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> net (float[b, 4] x) => (float[b, 4] y) '
        "{ [one] a = MatMul(x, w) [two] c = MatMul(a, w) r = Relu(c) [three] y = MatMul(r, w) }"
    )
    model.graph.initializer.append(graphs.weight("w", 4, 4))
    layers = suspects.layers_of(graphs.write(tmp_path, model), multiplying=True)
    assert list(layers) == ["one", "two", "three"]
    found = suspects.by_suspicion(layers, model.graph, [compared("a", 0.1), compared("r", 0.3), compared("y", 0.2)])
    assert found == ["two", "three", "one"]
