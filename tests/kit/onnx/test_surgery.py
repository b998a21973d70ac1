"""Nodes and stored tensors are put in, exchanged and taken out, and every reader follows."""

import graphs
import numpy as np
import pytest
from graphs import FLOAT
from onnx import checker, helper

from engine.kit.onnx import ir_models, surgery
from engine.kit.onnx.surgery import TensorNames
from engine.runtimes.onnxruntime import session as ort


def answer(tmp_path, model, x):
    checker.check_model(ir_models.proto(model), full_check=True)
    ir_models.save(model, tmp_path)
    return ort.run(ort.session(tmp_path, threads=1), {"x": x})


def relu(*, outputs=("y",)):
    """Return x [n] -> Relu -> y [n], stored next to a tensor `spare`."""
    shape = ["n"]
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
    return ir_models.of(
        graphs.graph(nodes, [("x", FLOAT, shape)], [(name, FLOAT, shape) for name in outputs], [graphs.weight("w", 1)])
    )


def test_a_node_in_the_place_of_another_gives_its_output_under_the_same_name(tmp_path):
    model = relu()
    (old,) = model.graph
    half = surgery.store(model.graph, "half", np.array([0.5], np.float32))
    down = surgery.node("Mul", [old.inputs[0], half], "down", "down")
    surgery.replace(old, [down, surgery.node("Abs", down.outputs, "y", "abs")])
    np.testing.assert_array_equal(answer(tmp_path, model, np.float32([-4, 2]))["y"], [2, 1])


def test_a_node_behind_another_takes_over_its_output_and_its_readers(tmp_path):
    model = relu()
    (node,) = model.graph
    value = node.outputs[0]
    reader = surgery.node("Neg", [value], "z", "neg")
    model.graph.append(reader)
    surgery.follow(value, "y_inner", surgery.node("Add", [value, value], "", "twice"))
    assert [each.name for each in model.graph.outputs] == ["y"]
    assert reader.inputs[0].name == "y"
    assert value.name == "y_inner"
    np.testing.assert_array_equal(answer(tmp_path, model, np.float32([-4, 2]))["y"], [0, 4])


def test_what_no_node_made_cannot_be_followed():
    model = relu()
    with pytest.raises(ValueError, match="no node gives x"):
        surgery.follow(model.graph.inputs[0], "inner", surgery.node("Abs", [model.graph.inputs[0]], "", "abs"))


def test_only_unread_stored_tensors_go_also_from_the_inputs():
    model = ir_models.of(graphs.layers())
    spare = surgery.store(model.graph, "spare", np.ones(3, np.float32))
    model.graph.inputs.append(spare)
    surgery.drop_unread(model.graph.initializers.values())
    assert sorted(model.graph.initializers) == ["bias", "first", "second"]
    assert [value.name for value in model.graph.inputs] == ["x"]
    read_in_a_body = ir_models.of(graphs.loop())
    surgery.drop_unread(read_in_a_body.graph.initializers.values())
    assert "w" in read_in_a_body.graph.initializers


def test_a_computed_value_has_no_stored_numbers():
    with pytest.raises(ValueError, match="y is no stored tensor"):
        surgery.numbers(relu().graph.outputs[0])


def doubled():
    """Return a model in which one node reads a tensor twice: x [n] -> y [n]; nobody reads `spare`."""
    return ir_models.of(
        graphs.parsed("(float[n] x) => (float[n] y) { a = Relu(x) [Relu_0] y = Mul(a, a) }", spare=(4,))
    )


@pytest.mark.parametrize(("with_output", "names"), [(False, ["Relu_0", "Relu_0_1"]), (True, ["Relu_0_a", "Relu_0"])])
def test_each_node_gets_a_name_of_its_own_and_a_taken_one_is_not_given_twice(with_output, names):
    model = doubled()
    surgery.name_nodes(model, with_output=with_output)
    assert [node.name for node in model.graph] == names


def test_a_new_tensor_gets_a_name_that_no_tensor_has_also_in_bodies():
    free = TensorNames(doubled()).free
    names = [free(name) for name in ("a", "a", "new", "new", "spare", "x")]
    assert names == ["a_", "a__", "new", "new_", "spare_", "x_"]
    assert TensorNames(ir_models.of(graphs.loop())).free("next") == "next_"
