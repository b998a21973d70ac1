"""Nodes and stored tensors are put in, exchanged and taken out, and every reader follows."""

import graphs
import numpy as np
import pytest
from graphs import FLOAT
from onnx import checker, helper

from engine.kit.onnx import ir_models, surgery
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


def test_what_a_body_reads_stays():
    model = ir_models.of(graphs.loop())
    surgery.drop_unread(model.graph.initializers.values())
    assert "w" in model.graph.initializers


def test_a_computed_value_has_no_stored_numbers():
    with pytest.raises(ValueError, match="y is no stored tensor"):
        surgery.numbers(relu().graph.outputs[0])
