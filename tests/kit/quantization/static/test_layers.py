import numpy as np
import onnx
import pytest

from engine.kit.onnx import ir_models, surgery
from engine.kit.quantization.static import layers


def candidates_of(text, multiplications, **weights):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> net {text}')
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in weights.items()
    )
    graph = ir_models.of(model)
    nodes = dict.fromkeys(graph.graph, multiplications)
    return layers.find(graph, nodes)


IMAGE = "(float[b, c, 8, 8] x) => (float[b, o, p, q] y)"


@pytest.mark.parametrize(
    ("attributes", "shape", "reason"),
    [
        ("", (32, 32, 3, 3), ""),
        ("", (32, 8, 3, 3), ""),
        ("", (32, 3, 3, 3), "27 inputs"),
        ("", (64, 3, 7, 7), ""),
        ("", (64, 32, 1, 1), ""),
        ("", (64, 16, 1, 1), "16 inputs"),
        ("<group = 32>", (32, 1, 5, 5), "depthwise"),
        ("<group = 4>", (64, 16, 3, 3), "16 inputs"),
        ("<group = 4>", (96, 24, 3, 3), ""),
        ("", (64, 32, 3), ""),
    ],
)
def test_the_kinds_of_convolutions_that_lose_are_left_with_a_reason(attributes, shape, reason):
    candidates = candidates_of(f"{IMAGE} {{ y = Conv{attributes}(x, w) }}", 10**9, w=shape)
    assert len(candidates.layers) == (not reason)
    assert reason in candidates.left.get("y", "")


def test_a_window_at_one_place_is_left():
    candidates = candidates_of(f"{IMAGE} {{ y = Conv(x, w) }}", 64 * 32, w=(64, 32, 1, 1))
    assert not candidates.layers
    assert "one place" in candidates.left["y"]


@pytest.mark.parametrize(
    ("text", "shape", "fits"),
    [
        ("(float[b, 8] x) => (float[b, 6] y) { y = Gemm(x, w) }", (8, 6), True),
        ("(float[b, 8] x) => (float[b, 6] y) { y = Gemm<transB = 1>(x, w) }", (6, 8), True),
        ("(float[8, b] x) => (float[b, 6] y) { y = Gemm<transA = 1>(x, w) }", (8, 6), False),
        ("(float[b, 8] x) => (float[b, 6] y) { y = Gemm<alpha = 2.0>(x, w) }", (8, 6), False),
        ("(float[b, 8] x) => (float[b, 6] y) { y = MatMul(x, w) }", (8, 6), True),
        ("(float[b, 8] x) => (float[b] y) { y = MatMul(x, w) }", (8,), False),
        ("(float[b, 8] x) => (float[b, 8] y) { y = MatMul(x, x) }", (8, 6), False),
    ],
)
def test_a_product_with_a_matrix_fits(text, shape, fits):
    candidates = candidates_of(text, 10**9, w=shape)
    assert len(candidates.layers) == fits
    assert len(candidates.left) == (not fits)


def test_the_axis_of_the_outputs_follows_the_operator():
    (turned,) = candidates_of("(float[b, 8] x) => (float[b, 6] y) { y = Gemm<transB = 1>(x, w) }", 9, w=(6, 8)).layers
    (plain,) = candidates_of("(float[b, 8] x) => (float[b, 6] y) { y = MatMul(x, w) }", 9, w=(8, 6)).layers
    assert (turned.channels, plain.channels) == (0, 1)


@pytest.mark.parametrize(
    ("behind", "output"),
    [
        ("z = Conv(x, w) y = Relu(z)", "y"),
        ("z = Conv(x, w) a = Relu(z) y = Add(z, a)", "z"),
        ("z = Conv(x, w) y = Sigmoid(z)", "z"),
    ],
)
def test_a_convolution_ends_behind_the_relu_that_alone_reads_it(behind, output):
    (layer,) = candidates_of(f"{IMAGE} {{ {behind} }}", 10**9, w=(32, 32, 3, 3)).layers
    assert (layer.result, layer.output, layer.source) == ("z", output, "x")


def test_dense_convolutions_are_counted_without_a_run():
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> net {IMAGE} {{ y = Conv(x, w) }}')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((32, 32, 3, 3), np.float32), "w"))
    graph = ir_models.of(model)
    assert layers.are_dense(graph) == 1
    assert surgery.output_names(next(iter(graph.graph))) == ["y"]
