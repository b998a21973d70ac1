"""Graphs with an input whose values are sizes of other tensors."""

from onnx import TensorProto, helper


def reshape(dtype=TensorProto.INT64):
    nodes = [helper.make_node("Reshape", ["x", "target"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    target = helper.make_tensor_value_info("target", dtype, [2])
    return graph(nodes, target, helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"]))


def counting():
    """Return a graph that adds the sum of 0, 1, ... up to `limit` to `x`."""
    ends = [
        helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [], [value]))
        for name, value in (("zero", 0), ("one", 1))
    ]
    nodes = [
        helper.make_node("Range", ["zero", "limit", "one"], ["range"]),
        helper.make_node("Cast", ["range"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["numbers"], ["sum"], keepdims=1),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    limit = helper.make_tensor_value_info("limit", TensorProto.INT64, [])
    return graph([*ends, *nodes], limit, helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 16]))


def graph(nodes, sizes, output):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])
    content = helper.make_graph(nodes, "g", [x, sizes], [output])
    return helper.make_model(content, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
