"""The range of an integer input is the number of rows of the smallest table that it indexes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from engine.kit.inputs import index_ranges


def graph_of(nodes, inputs, tables):
    values = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in inputs]
    weights = [numpy_helper.from_array(np.zeros(shape, "float32"), name) for name, shape in tables.items()]
    return helper.make_model(helper.make_graph(nodes, "g", values, [], weights))


def test_the_table_is_found_behind_casts_and_on_any_axis():
    nodes = [
        helper.make_node("Cast", ["ids"], ["small"], to=TensorProto.INT32),
        helper.make_node("Unsqueeze", ["small", "axes"], ["column"]),
        helper.make_node("DequantizeLinear", ["table", "scale"], ["real"]),
        helper.make_node("Gather", ["real", "column"], ["found"], axis=1),
    ]
    assert index_ranges.of(graph_of(nodes, ["ids"], {"table": (7, 30)})) == {"ids": 30}


def test_the_smaller_of_two_tables_decides():
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["a"]),
        helper.make_node("Gather", ["places", "ids"], ["b"]),
    ]
    assert index_ranges.of(graph_of(nodes, ["ids"], {"words": (90, 4), "places": (12, 4)})) == {"ids": 12}


def test_the_tables_of_a_fused_embedding_are_found():
    names = ["ids", "segments", "words", "places", "kinds"]
    nodes = [helper.make_node("EmbedLayerNormalization", names, ["out"], domain="com.microsoft")]
    model = graph_of(nodes, ["ids", "segments"], {"words": (90, 4), "places": (64, 4), "kinds": (2, 4)})
    assert index_ranges.of(model) == {"ids": 90, "segments": 2}


def test_an_input_that_indexes_no_table_has_no_range():
    nodes = [helper.make_node("Add", ["ids", "ids"], ["sum"])]
    assert index_ranges.of(graph_of(nodes, ["ids"], {})) == {}
