"""The multiplications of a graph are counted in the precision that the graph states."""

import graphs
import numpy as np
import pytest
from graphs import FLOAT
from onnx import TensorProto, helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.quantization import work_by_precision
from engine.kit.quantization.half import half, ranges


def two_layers(first, *weights):
    """Return a graph of one layer [8 -> 16] that is given by its nodes, and one layer [16 -> 4] in fp32."""
    nodes = [*first, helper.make_node("MatMul", ["hidden", "second"], ["y"], "second")]
    return graphs.graph(
        nodes,
        [("x", FLOAT, ["batch", 8])],
        [("y", FLOAT, ["batch", 4])],
        [*weights, graphs.weight("second", 16, 4)],
        opset=21,
        ir=10,
    )


def dequantized(code, *, input_too):
    """Return a layer whose weights, and whose input where `input_too`, are dequantized from the type `code`."""
    weight = helper.make_tensor("stored", code, [8, 16], np.ones(128, np.int8).tolist())
    scale = numpy_helper.from_array(np.array(0.1, np.float32), "scale")
    zero = helper.make_tensor("zero", code, [], [0])
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["small"]),
        helper.make_node("DequantizeLinear", ["small", "scale", "zero"], ["rounded"]),
        helper.make_node("DequantizeLinear", ["stored", "scale", "zero"], ["weight"]),
        helper.make_node("MatMul", ["rounded" if input_too else "x", "weight"], ["hidden"], "first"),
    ]
    return two_layers(nodes if input_too else nodes[2:], weight, scale, zero)


def counted(model, tmp_path):
    onnx_files.save(model, tmp_path / "model")
    inputs = {"x": np.zeros((3, 8), np.float32)}
    return work_by_precision.multiplications(tmp_path / "model", inputs, tmp_path / "scratch")


SECOND = 3 * 16 * 4
FIRST = 3 * 8 * 16


@pytest.mark.parametrize(
    ("code", "input_too", "name"),
    [
        (TensorProto.INT8, True, "int8"),
        (TensorProto.INT8, False, "fp32"),
        (TensorProto.FLOAT8E4M3FN, True, "fp8"),
        (TensorProto.INT4, False, "int4"),
    ],
)
def test_an_operator_has_the_precision_of_both_its_factors(tmp_path, code, input_too, name):
    expected = {"fp32": SECOND}
    expected[name] = expected.get(name, 0) + FIRST
    assert counted(dequantized(code, input_too=input_too), tmp_path) == expected


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_operators_in_half_precision_count_as_such(tmp_path, kind):
    model = two_layers([helper.make_node("MatMul", ["x", "first"], ["hidden"], "first")], graphs.weight("first", 8, 16))
    types = ranges.tensor_types(ir_models.of(model), tmp_path)
    graphs.changed(model, half.convert, {"first"}, types, kind)
    assert counted(model, tmp_path) == {kind: FIRST, "fp32": SECOND}
