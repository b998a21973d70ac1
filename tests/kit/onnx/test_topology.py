"""Topology: the producers and stored tensors of a message, found by name."""

import graphs

from engine.kit.onnx import topology


def test_producers_and_stored_tensors_are_told_by_name():
    graph = graphs.layers().graph
    assert topology.producers(graph)["c"].op_type == "Relu"
    assert topology.initializers(graph).keys() == {"first", "bias", "second"}


def test_values_go_by_name_and_the_others_stay():
    graph = graphs.layers().graph
    topology.remove_named(graph.initializer, {"bias", "nothing"})
    assert [tensor.name for tensor in graph.initializer] == ["first", "second"]
