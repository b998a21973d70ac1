"""Products that overflow in fp16 are computed on smaller numbers, and mean what they meant."""

import graphs
import numpy as np
import pytest
from onnx import numpy_helper

from engine.kit.onnx import ir_models, onnx_files, surgery
from engine.kit.onnx.surgery import name_nodes
from engine.kit.quantization.half import half_choice, overflow, ranges
from engine.runtimes.onnxruntime import session as ort

LIMIT = half_choice.largest_limit("fp16")


def measured(model, values, tmp_path):
    return ranges.measure(ir_models.of(model), [{"x": values}], tmp_path)


def product(tmp_path, *, inputs, weights):
    """Return a model of one product, its values, and the same after scaling; each with what it answers."""
    generator = np.random.default_rng(0)
    values = generator.uniform(-inputs, inputs, (4, 64)).astype("float32")
    weight = generator.uniform(-weights, weights, (64, 8)).astype("float32")
    model = graphs.parsed("(float[batch, 64] x) => (float[batch, 8] y) { y = MatMul(x, w) }", w=weight)
    graphs.changed(model, name_nodes)
    onnx_files.save(model, tmp_path / "before")
    scaled = graphs.changed(model, overflow.scale_products, measured(model, values, tmp_path), "fp16")
    graphs.changed(model, lambda graph: surgery.drop_unread(graph.graph.initializers.values()))
    onnx_files.save(model, tmp_path / "after")
    answers = [ort.run(ort.session(tmp_path / name, threads=1), {"x": values})["y"] for name in ("before", "after")]
    seen = measured(model, values, tmp_path)
    return scaled, model, answers, seen


@pytest.mark.parametrize(
    ("inputs", "weights"),
    [(2e4, 1.0), (4e5, 0.05), (50.0, 2e4), (3.0, 3e4), (1e5, 1e3)],
    ids=["large inputs", "inputs beyond the range", "large weights", "small inputs", "both"],
)
def test_what_overflows_is_scaled_by_powers_of_two_and_means_the_same(tmp_path, inputs, weights):
    scaled, model, answers, seen = product(tmp_path, inputs=inputs, weights=weights)
    assert len(scaled) == 1
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-5, atol=1e-5 * np.abs(answers[0]).max())
    [matmul] = [node for node in model.graph.node if node.op_type == "MatMul"]
    assert max(seen.largest[name] for name in (*matmul.input, *matmul.output)) <= LIMIT
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    powers = [np.log2(value) for value in stored.values() if not value.shape]
    assert all(power == round(power) for power in powers)


def test_what_needs_no_scaling_is_left_alone(tmp_path):
    scaled, model, answers, _ = product(tmp_path, inputs=1.0, weights=1.0)
    assert scaled == []
    assert [node.op_type for node in model.graph.node] == ["MatMul"]
    assert np.array_equal(*answers)
