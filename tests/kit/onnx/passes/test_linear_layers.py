"""Gemm taken apart means what it meant, whoever else reads its weight."""

from __future__ import annotations

import graphs
import numpy as np
import pytest
from graphs import FLOAT
from onnx import TensorProto, checker, helper

from engine.kit.onnx import onnx_files
from engine.kit.onnx.passes import linear_layers
from engine.runtimes.onnxruntime import session as ort


def answers(directory, model, inputs):
    checker.check_model(model, full_check=True)
    return ort.run(ort.session(graphs.write(directory, model), threads=1, level="disabled"), inputs)


def same(tmp_path, model, **inputs):
    """Split the model; return what operators it has then, having seen that it answers as before."""
    before = answers(tmp_path / "before", model, inputs)
    graphs.changed(model, linear_layers.split)
    after = answers(tmp_path / "after", model, inputs)
    for name, expected in before.items():
        np.testing.assert_allclose(after[name], expected, rtol=1e-5, atol=1e-5)
    return [node.op_type for node in onnx_files.nodes(model)]


def numbers(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def gemm(inputs, output, **attributes):
    return helper.make_node("Gemm", inputs, [output], **attributes)


def stored(model):
    return sorted(tensor.name for tensor in model.graph.initializer)


def matrices(nodes, weights, *, outputs=("y",)):
    shapes = [(name, FLOAT, None) for name in outputs]
    model = graphs.graph(nodes, [("x", FLOAT, ["n", 6])], [], weights)
    model.graph.output.extend(helper.make_tensor_value_info(*shape) for shape in shapes)
    for value in model.graph.output:
        value.type.tensor_type.shape.dim.add().dim_param = f"{value.name}_rows"
        value.type.tensor_type.shape.dim.add().dim_param = f"{value.name}_columns"
    return model


def test_every_reader_of_a_weight_gets_it_the_way_it_reads_it(tmp_path):
    nodes = [
        gemm(["x", "w"], "a", transB=1),
        gemm(["a", "w", "b"], "c", transB=1),
        gemm(["c", "w", ""], "d"),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
    ]
    model = matrices(nodes, [graphs.weight("w", 6, 6), graphs.weight("b", 6)])
    assert same(tmp_path, model, x=numbers(3, 6)) == ["MatMul", "MatMul", "Add", "MatMul", "MatMul"]
    assert stored(model) == ["b", "w", "w_transposed"]


def test_a_weight_that_nobody_else_reads_is_stored_once_and_its_old_shape_forgotten(tmp_path):
    model = matrices([gemm(["x", "w"], "a", transB=1), gemm(["x", "w"], "y", transB=1)], [graphs.weight("w", 4, 6)])
    model.graph.input.append(helper.make_tensor_value_info("w", FLOAT, [4, 6]))
    model.graph.value_info.append(helper.make_tensor_value_info("w", FLOAT, [4, 6]))
    assert same(tmp_path, model, x=numbers(3, 6)) == ["MatMul", "MatMul"]
    assert stored(model) == ["w_transposed"]
    assert [value.name for value in model.graph.input] == ["x"]
    assert not model.graph.value_info


def test_a_weight_that_is_an_output_as_well_stays(tmp_path):
    model = matrices([gemm(["x", "w"], "y", transB=1)], [graphs.weight("w", 4, 6)], outputs=("y", "w"))
    same(tmp_path, model, x=numbers(3, 6))
    assert stored(model) == ["w", "w_transposed"]


@pytest.mark.parametrize("attributes", [{"alpha": 0.5}, {"beta": 2.0}, {"transA": 1}])
def test_a_gemm_that_scales_or_turns_its_input_stays_one(tmp_path, attributes):
    model = matrices([gemm(["x", "w", "b"], "y", **attributes)], [graphs.weight("w", 6, 6), graphs.weight("b", 6)])
    assert same(tmp_path, model, x=numbers(6, 6)) == ["Gemm"]


def test_a_gemm_that_transposes_what_is_no_weight_stays_one(tmp_path):
    model = matrices([gemm(["x", "x"], "y", transB=1)], [])
    assert same(tmp_path, model, x=numbers(3, 6)) == ["Gemm"]


def test_names_that_are_taken_are_left_alone(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y_MatMul"]), gemm(["y_MatMul", "w", "w_transposed"], "y", transB=1)]
    model = matrices(nodes, [graphs.weight("w", 4, 6), graphs.weight("w_transposed", 4)])
    assert same(tmp_path, model, x=numbers(3, 6)) == ["Relu", "MatMul", "Add"]


@pytest.mark.parametrize("which", [True, False])
def test_bodies_read_the_weights_around_them_and_those_of_the_same_name_of_their_own(tmp_path, which):
    branches = {}
    for seed, name in enumerate(("then_branch", "else_branch")):
        output = helper.make_tensor_value_info(f"{name}_y", FLOAT, ["n", 6])
        nodes = [gemm(["x", "outer"], f"{name}_a", transB=1), gemm([f"{name}_a", "own"], f"{name}_y", transB=1)]
        branches[name] = helper.make_graph(nodes, name, [], [output], [graphs.weight("own", 6, 6, seed=seed)])
    nodes = [helper.make_node("If", ["which"], ["a"], **branches), gemm(["a", "outer"], "y", transB=1)]
    model = matrices(nodes, [graphs.weight("outer", 6, 6, seed=5)])
    model.graph.input.append(helper.make_tensor_value_info("which", TensorProto.BOOL, []))
    outputs = same(tmp_path, model, x=numbers(3, 6), which=np.array(which))
    assert sorted(outputs) == ["If", *["MatMul"] * 5]
    assert stored(model) == ["outer_transposed"]
