"""Padding before a pooling stays what the graph says, whatever ONNX Runtime fuses."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.kit.onnx.passes import padding


@pytest.mark.parametrize("is_constant", [True, False])
def test_zeros_around_negative_numbers_are_the_largest_where_they_are_pooled(is_constant):
    number = numpy_helper.from_array(np.float32(0), "zero")
    pads = numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "pads")
    nodes = [helper.make_node("Constant", [], ["zero"], value=number)] if is_constant else []
    nodes += [
        helper.make_node("Pad", ["image", "pads", "zero"], ["padded"]),
        helper.make_node("MaxPool", ["padded"], ["pooled"], kernel_shape=[3, 3]),
    ]
    shape = [1, 1, 2, 2]
    image, pooled = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("image", "pooled"))
    graph = helper.make_graph(nodes, "it", [image], [pooled], [pads, *([] if is_constant else [number])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    padding.keep_apart(model)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    [answer] = session.run(None, {"image": np.full(shape, -1, np.float32)})
    np.testing.assert_allclose(answer, np.zeros(shape), atol=1e-30)
