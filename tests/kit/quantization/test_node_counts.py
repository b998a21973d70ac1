"""The nodes of a graph that compute on a GPU are counted without shapes and without names for them."""

import graphs
import numpy as np
from graphs import FLOAT
from onnx import TensorProto, helper, numpy_helper

from engine.kit.onnx import ir_models
from engine.kit.quantization import node_counts
from engine.kit.quantization.report import NodeCounts


def test_nodes_that_compute_shapes_or_reshape_do_not_count_as_computing():
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "index"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "axes"], ["first"]),
        helper.make_node("Concat", ["first", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT16),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Cast", ["c"], ["y"], to=FLOAT),
    ]
    numbers = {"index": 0, "axes": [0], "rest": [-1]}
    stored = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    model = graphs.graph(nodes, [("x", FLOAT, ["n", 4])], [("y", FLOAT, None)], stored, opset=20)
    assert node_counts.of(ir_models.of(model)) == NodeCounts(all=8, casts=2, computing=3)
