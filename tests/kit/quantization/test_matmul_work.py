"""The multiplications of matrix operators, counted from the shapes of one run."""

from __future__ import annotations

import graphs
import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.onnx import ir_models
from engine.kit.quantization import matmul_work


def counted(nodes, x, tmp_path, **weights):
    """The multiplications of each matrix operator, by the name of its node, in a run on `x`."""
    x = np.ones(x, np.float32)
    axes = ", ".join(f"n{axis}" for axis in range(x.ndim))
    model = graphs.parsed(f"(float[{axes}] x) => (float[] y) {{ {nodes} }}", **weights)
    counts = matmul_work.measured(ir_models.of(model), {"x": x}, tmp_path)
    return {node.name: count for node, count in counts.items()}


def test_products_of_matrices_and_convolutions_are_counted(tmp_path):
    nodes = "[wide] a = MatMul(x, w) [thin] b = Gemm<transB = 1>(a, v) [none] y = Relu(b)"
    assert counted(nodes, (5, 8), tmp_path, w=(8, 30), v=(2, 30)) == {"wide": 5 * 30 * 8, "thin": 5 * 2 * 30}
    nodes = "[conv] a = Conv(x, w) [back] y = ConvTranspose(a, v)"
    counts = counted(nodes, (1, 3, 6, 7), tmp_path, w=(4, 3, 3, 3), v=(4, 2, 2, 2))
    assert counts == {"conv": (4 * 4 * 5) * (3 * 3 * 3), "back": (4 * 4 * 5) * (2 * 2 * 2)}
    assert counted("y = Relu(x)", (2, 3), tmp_path) == {}


def test_a_model_stays_as_it_was_and_says_why_it_cannot_run(tmp_path):
    model = ir_models.of(graphs.layers(8, 16))
    before = ir_models.proto(model).SerializeToString()
    (name,) = [value.name for value in model.graph.inputs]
    with pytest.raises(StepError, match="cannot run the model"):
        matmul_work.measured(model, {name: np.ones((2, 9), np.float32)}, tmp_path)
    assert ir_models.proto(model).SerializeToString() == before


def test_the_largest_sample_has_the_most_numbers():
    small, large = {"x": np.ones((1, 4)), "y": np.ones(2)}, {"x": np.ones((1, 3)), "y": np.ones(9)}
    assert matmul_work.largest([small, large, small]) is large
