"""Which nodes can read a matrix in blocks: products, products with its transpose, and look-ups of whole rows."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from engine.kit.onnx import ir_models
from engine.kit.quantization.weight_only import layers

HEAD = '<ir_version: 9, opset_import: ["" : 17]> net '
PRODUCT = "(float[b, 64] x) => (float[b, n] y) { y = MatMul(x, w) }"


def readers(text, *shape):
    """Return the numbers of products, of products with the transpose, and of look-ups that read the matrix w."""
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(shape, np.float32), "w"))
    every = list(layers.of(ir_models.of(model).graph).values())
    return [(len(each.products), len(each.transposed), len(each.lookups)) for each in every]


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        (PRODUCT, (64, 8), [(1, 0, 0)]),
        (PRODUCT, (64, 7), []),
        (PRODUCT, (1, 64, 8), []),
        ("(float[b, 64] x) => (float[b, 9] y) { t = Transpose(w) y = MatMul(x, t) }", (9, 64), [(0, 1, 0)]),
        ("(float[b, 64] x) => (float[64, 9] t, float[b, 9] y) { t = Transpose(w) y = MatMul(x, t) }", (9, 64),
         [(0, 1, 0)]),
        ("(float[64, b] x) => (float[9, b] y) { y = MatMul(w, x) }", (9, 64), []),
        ("(int64[b] i) => (float[b, 64] y) { y = Gather(w, i) }", (1024, 64), [(0, 0, 1)]),
        ("(int64[b] i) => (float[b, 64] y) { y = Gather(w, i) }", (1023, 64), []),
        ("(int64[b] i) => (float[b, 96] y) { y = Gather(w, i) }", (1024, 96), []),
        ("(int64[b] i) => (float[1024, b] y) { y = Gather<axis = 1>(w, i) }", (1024, 64), []),
    ],
)  # fmt: skip
def test_the_readers_of_a_matrix(text, shape, expected):
    assert readers(text, *shape) == expected
