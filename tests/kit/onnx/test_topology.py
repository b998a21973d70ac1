"""Topology: producers and consumers of tensors, also in bodies, and names that are still free."""

import graphs
from graphs import FLOAT
from onnx import helper

from engine.kit.onnx import onnx_files, topology
from engine.kit.onnx.topology import TensorNames


def doubled():
    """Return a model in which one node reads a tensor twice: x [n] -> y [n]; nobody reads `spare`."""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Mul", ["a", "a"], ["y"], name="Relu_0")]
    shape = ["n"]
    return graphs.graph(nodes, [("x", FLOAT, shape)], [("y", FLOAT, shape)], [graphs.weight("spare", 4)])


def test_producers_and_consumers_are_told_by_tensor():
    graph = doubled().graph
    assert topology.producers(graph)["a"].op_type == "Relu"
    assert [node.op_type for node in topology.consumers(graph.node)["a"]] == ["Mul", "Mul"]
    assert topology.initializers(graph).keys() == {"spare"}


def test_what_a_body_reads_is_consumed_and_captured():
    model = graphs.choice()
    holder = next(node for node in model.graph.node if node.op_type == "If")
    inside = {name for body in onnx_files.bodies(holder) for node in body.node for name in node.input}
    assert inside <= topology.captured(holder)
    assert inside <= topology.consumed(model)


def test_stored_tensors_that_nobody_reads_go():
    model = doubled()
    topology.drop_unread(model)
    assert not model.graph.initializer


def test_each_node_gets_a_name_of_its_own_and_a_taken_one_is_not_given_twice():
    model = doubled()
    topology.name_nodes(model)
    assert [node.name for node in model.graph.node] == ["Relu_0", "Relu_0_1"]


def test_a_new_name_can_hold_the_first_output():
    model = doubled()
    topology.name_nodes(model, with_output=True)
    assert [node.name for node in model.graph.node] == ["Relu_0_a", "Relu_0"]


def test_a_new_tensor_gets_a_name_that_no_tensor_has():
    names = TensorNames(doubled())
    assert [names.free(name) for name in ("a", "a", "new", "new", "spare")] == ["a_", "a__", "new", "new_", "spare_"]
