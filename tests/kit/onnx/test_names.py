"""Names: each node has a name of its own, and a new tensor gets a name that is free, also in bodies."""

import graphs
from graphs import FLOAT
from onnx import helper

from engine.kit.onnx import ir_models, names
from engine.kit.onnx.names import TensorNames


def doubled():
    """Return a model in which one node reads a tensor twice: x [n] -> y [n]; nobody reads `spare`."""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Mul", ["a", "a"], ["y"], name="Relu_0")]
    shape = ["n"]
    return ir_models.of(graphs.graph(nodes, [("x", FLOAT, shape)], [("y", FLOAT, shape)], [graphs.weight("spare", 4)]))


def test_each_node_gets_a_name_of_its_own_and_a_taken_one_is_not_given_twice():
    model = doubled()
    names.name_nodes(model)
    assert [node.name for node in model.graph] == ["Relu_0", "Relu_0_1"]


def test_a_new_name_can_hold_the_first_output():
    model = doubled()
    names.name_nodes(model, with_output=True)
    assert [node.name for node in model.graph] == ["Relu_0_a", "Relu_0"]


def test_a_new_tensor_gets_a_name_that_no_tensor_has():
    free = TensorNames(doubled()).free
    assert [free(name) for name in ("a", "a", "new", "new", "spare", "x")] == [
        "a_",
        "a__",
        "new",
        "new_",
        "spare_",
        "x_",
    ]


def test_names_of_tensors_in_bodies_are_taken():
    model = ir_models.of(graphs.loop())
    free = TensorNames(model).free
    assert free("next") == "next_"
