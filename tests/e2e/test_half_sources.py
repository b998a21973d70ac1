"""ONNX files in half precision are built in int8, and an error about a missed precision names what stayed, and why."""

import ml_dtypes
import numpy as np
import pytest
from graphs import FLOAT, graph, weight
from onnx import TensorProto, helper, numpy_helper, save
from program import Program

RECIPE = "name: r\nmodel: {source: model.onnx}\nprecision: int8\nprofiles: [{batch: [1, 4, 16]}]\n"
HALVES = {"fp16": (TensorProto.FLOAT16, np.float16), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}
ENDS = [("x", FLOAT, ["batch", 32])], [("y", FLOAT, ["batch", 32])]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "r.yaml").write_text(RECIPE)
    return Program(tmp_path)


def layers(half):
    """Two layers of 32 channels in half precision, between inputs and outputs in float32."""
    kind, dtype = HALVES[half]
    numbers = (np.random.default_rng(0).standard_normal((32, 32)) / 6).astype(dtype)
    nodes = [
        helper.make_node("Cast", ["x"], ["xh"], to=kind),
        helper.make_node("MatMul", ["xh", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["yh"]),
        helper.make_node("Cast", ["yh"], ["y"], to=FLOAT),
    ]
    stored = helper.make_tensor("w", kind, [32, 32], numbers.tobytes(), raw=True)
    return graph(nodes, *ENDS, [stored], opset=17, ir=9)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.sample(1)
def test_a_file_in_half_precision_becomes_int8_where_check_finds_it_fine(project, half):
    save(layers(half), project.folder / "model.onnx")
    assert "is fine" in project("check", "r.yaml", expect=0).stdout
    assert "100% in int8" in project("build", "r.yaml", expect=0).stdout


@pytest.mark.whole("test_a_file_in_half_precision_becomes_int8_where_check_finds_it_fine")
def test_the_error_about_a_missed_precision_names_the_layers_that_stayed_and_the_reason(project):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Einsum", ["h", "v"], ["e"], equation="bi,ij->bij"),
        helper.make_node("ReduceSum", ["e", "axis"], ["s"], keepdims=0),
        helper.make_node("Einsum", ["s", "v"], ["f"], equation="bi,ij->bij"),
        helper.make_node("ReduceSum", ["f", "axis"], ["y"], keepdims=0),
    ]
    axis = numpy_helper.from_array(np.array([1]), "axis")
    save(graph(nodes, *ENDS, [weight("w", 32, 32), weight("v", 32, 32), axis]), project.folder / "model.onnx")
    for _ in range(2):  # built, and judged again from the store
        done = project("build", "r.yaml", expect=4)
        assert (
            "2 Einsum in floating point: this kind of operator has no form in dynamic int8" in done.stdout + done.stderr
        )
