"""Gemm taken apart means what it meant, whoever else reads its weight."""

from __future__ import annotations

import graphs
import numpy as np
import pytest
from graphs import FLOAT
from onnx import checker, helper

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


def stored(model):
    return sorted(tensor.name for tensor in model.graph.initializer)


def matrices(text, *, outputs="float[rows, columns] y", inputs="", **weights):
    return graphs.parsed(f"(float[n, 6] x{inputs}) => ({outputs}) {{ {text} }}", **weights)


def test_every_reader_of_a_weight_gets_it_the_way_it_reads_it(tmp_path):
    text = "a = Gemm<transB = 1>(x, w) c = Gemm<transB = 1>(a, w, b) d = Gemm(c, w, ) y = MatMul(d, w)"
    model = matrices(text, w=(6, 6), b=(6,))
    assert same(tmp_path, model, x=numbers(3, 6)) == ["MatMul", "MatMul", "Add", "MatMul", "MatMul"]
    assert stored(model) == ["b", "w", "w_transposed"]


def test_a_weight_that_nobody_else_reads_is_stored_once_and_its_old_shape_forgotten(tmp_path):
    text = "a = Gemm<transB = 1>(x, w) y = Gemm<transB = 1>(x, w)"
    model = matrices(text, inputs=", float[4, 6] w", w=(4, 6))
    model.graph.value_info.append(helper.make_tensor_value_info("w", FLOAT, [4, 6]))
    assert same(tmp_path, model, x=numbers(3, 6)) == ["MatMul", "MatMul"]
    assert stored(model) == ["w_transposed"]
    assert [value.name for value in model.graph.input] == ["x"]
    assert not model.graph.value_info


def test_a_weight_that_is_an_output_as_well_stays(tmp_path):
    model = matrices("y = Gemm<transB = 1>(x, w)", outputs="float[n, 4] y, float[4, 6] w", w=(4, 6))
    same(tmp_path, model, x=numbers(3, 6))
    assert stored(model) == ["w", "w_transposed"]


@pytest.mark.parametrize(
    "gemm", ["<alpha = 0.5>(x, w, b)", "<beta = 2.0>(x, w, b)", "<transA = 1>(x, w, b)", "<transB = 1>(x, x)"]
)
def test_a_gemm_that_scales_or_turns_its_input_or_transposes_no_weight_stays_one(tmp_path, gemm):
    assert same(tmp_path, matrices(f"y = Gemm{gemm}", w=(6, 6), b=(6,)), x=numbers(6, 6)) == ["Gemm"]


def test_names_that_are_taken_are_left_alone(tmp_path):
    model = matrices("y_MatMul = Relu(x) y = Gemm<transB = 1>(y_MatMul, w, w_transposed)", w=(4, 6), w_transposed=(4,))
    assert same(tmp_path, model, x=numbers(3, 6)) == ["Relu", "MatMul", "Add"]


@pytest.mark.parametrize("which", [True, False])
def test_bodies_read_the_weights_around_them_and_those_of_the_same_name_of_their_own(tmp_path, which):
    bodies = [
        f"{name}_branch = {name} () => (float[n, 6] {name}_y) "
        f"{{ {name}_a = Gemm<transB = 1>(x, outer) {name}_y = Gemm<transB = 1>({name}_a, own) }}"
        for name in ("then", "else")
    ]
    text = f"a = If (which) <{', '.join(bodies)}> y = Gemm<transB = 1>(a, outer)"
    model = matrices(text, inputs=", bool which", outer=graphs.weight("outer", 6, 6, seed=5))
    for seed, attribute in enumerate(model.graph.node[0].attribute):
        attribute.g.initializer.append(graphs.weight("own", 6, 6, seed=seed))
    outputs = same(tmp_path, model, x=numbers(3, 6), which=np.array(which))
    assert sorted(outputs) == ["If", *["MatMul"] * 5]
    assert stored(model) == ["outer_transposed"]
