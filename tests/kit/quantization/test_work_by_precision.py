"""The multiplications of a graph are counted in the precision that the graph states."""

import graphs
import numpy as np
import pytest
from onnx import TensorProto, helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.quantization import work_by_precision
from engine.kit.quantization.half import half, ranges


def two_layers(nodes, **weights):
    """Return a graph of one layer [8 -> 16] that is given by its nodes as text, and one layer [16 -> 4] in fp32."""
    text = f"(float[batch, 8] x) => (float[batch, 4] y) {{ {nodes} [second] y = MatMul(hidden, second) }}"
    return graphs.parsed(text, opset=21, ir=10, second=(16, 4), **weights)


def dequantized(code, *, input_too):
    """Return a layer whose weights, and whose input where `input_too`, are dequantized from the type `code`."""
    rounded = "small = QuantizeLinear(x, scale, zero) rounded = DequantizeLinear(small, scale, zero)"
    product = "weight = DequantizeLinear(stored, scale, zero) [first] hidden = MatMul({}, weight)"
    return two_layers(
        f"{rounded} {product.format('rounded')}" if input_too else product.format("x"),
        stored=helper.make_tensor("stored", code, [8, 16], np.ones(128, np.int8).tolist()),
        zero=helper.make_tensor("zero", code, [], [0]), scale=np.float32(0.1),
    )  # fmt: skip


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
    model = two_layers("[first] hidden = MatMul(x, first)", first=(8, 16))
    types = ranges.tensor_types(ir_models.of(model), tmp_path)
    graphs.changed(model, half.convert, {"first"}, types, kind)
    assert counted(model, tmp_path) == {kind: FIRST, "fp32": SECOND}
