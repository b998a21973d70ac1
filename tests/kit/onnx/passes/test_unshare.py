"""A weight that two kinds of operators share is stored for each kind, and no other weight twice."""

import graphs
from graphs import FLOAT
from onnx import helper

from engine.kit.onnx import ir_models
from engine.kit.onnx.passes import unshare


def unshared(readers, nodes):
    """Return what each node reads as its weight, after `nodes` got copies of their own."""
    nodes_of_kinds = [
        helper.make_node(kind, ["x", "w"], [f"y{index}"], name=f"n{index}") for index, kind in enumerate(readers)
    ]
    shape = [4, 4]
    outputs = [(f"y{index}", FLOAT, shape) for index in range(len(readers))]
    model = ir_models.of(graphs.graph(nodes_of_kinds, [("x", FLOAT, shape)], outputs, [graphs.weight("w", 4, 4)]))
    unshare.unshare(model, nodes, {"MatMul": (1,), "Gemm": (1,)})
    return [node.inputs[1].name for node in model.graph], sorted(model.graph.initializers)


def test_each_kind_of_operator_gets_one_copy():
    read, stored = unshared(["MatMul", "Gemm", "MatMul"], {"n0", "n1", "n2"})
    assert read == ["w_MatMul", "w_Gemm", "w_MatMul"]
    assert stored == ["w", "w_Gemm", "w_MatMul"]


def test_nodes_that_stay_as_they_are_keep_the_weight():
    assert unshared(["MatMul", "MatMul"], {"n1"}) == (["w", "w_MatMul"], ["w", "w_MatMul"])


def test_a_weight_of_one_kind_is_not_copied():
    assert unshared(["MatMul", "MatMul"], {"n0", "n1"}) == (["w", "w"], ["w"])
