"""The multiplications of matrix operators, counted from the shapes of one run."""

from __future__ import annotations

import graphs
import numpy as np
import pytest
from onnx import TensorProto, helper

from engine.errors import StepError
from engine.kit.onnx import ir_models
from engine.kit.quantization import matmul_work


def counted(nodes, weights, x, tmp_path):
    """The multiplications of each matrix operator, by the name of its node, in a run on `x`."""
    x = np.asarray(x, np.float32)
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None] * x.ndim)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "model", [value], [result], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    counts = matmul_work.measured(ir_models.of(model), {"x": x}, tmp_path)
    return {node.name: count for node, count in counts.items()}


def test_products_of_matrices(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "wide"),
        helper.make_node("Gemm", ["a", "v"], ["b"], "thin", transB=1),
        helper.make_node("Relu", ["b"], ["y"], "none"),
    ]
    weights = [graphs.weight("w", 8, 30), graphs.weight("v", 2, 30)]
    assert counted(nodes, weights, np.ones((5, 8)), tmp_path) == {"wide": 5 * 30 * 8, "thin": 5 * 2 * 30}


def test_convolutions(tmp_path):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv"),
        helper.make_node("ConvTranspose", ["a", "v"], ["y"], "back"),
    ]
    weights = [graphs.weight("w", 4, 3, 3, 3), graphs.weight("v", 4, 2, 2, 2)]
    counts = counted(nodes, weights, np.ones((1, 3, 6, 7)), tmp_path)
    assert counts == {"conv": (4 * 4 * 5) * (3 * 3 * 3), "back": (4 * 4 * 5) * (2 * 2 * 2)}


def test_no_matrix_operator(tmp_path):
    assert counted([helper.make_node("Relu", ["x"], ["y"])], [], np.ones((2, 3)), tmp_path) == {}


def test_a_model_stays_as_it_was_and_says_why_it_cannot_run(tmp_path):
    model = ir_models.of(graphs.layers(8, 16))
    before = ir_models.proto(model).SerializeToString()
    (name,) = [value.name for value in model.graph.inputs]
    with pytest.raises(StepError, match="cannot run the model"):
        matmul_work.measured(model, {name: np.ones((2, 9), np.float32)}, tmp_path)
    assert ir_models.proto(model).SerializeToString() == before


def test_the_largest_sample_has_the_most_numbers():
    small, large = {"x": np.ones((1, 4)), "y": np.ones(2)}, {"x": np.ones((1, 3)), "y": np.ones(9)}
    assert matmul_work.largest([small, large, small]) is large
