"""A small convolutional network with random weights, and images for it."""

import numpy as np
import onnx

from engine.kit.onnx import onnx_files

_TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[batch, 3, 32, 32] image) => (float[batch, 10] scores, float[batch, 48, 16, 16] features) {
    first = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(image, w0, b0)
    first_on = Relu(first)
    dense = Conv<pads = [1, 1, 1, 1]>(first_on, w1, b1)
    dense_on = Clip(dense, zero, six)
    apart = Conv<group = 32, pads = [1, 1, 1, 1]>(dense_on, w2)
    gate = Sigmoid(apart)
    weighed = Mul(apart, gate)
    point = Conv(weighed, w3, b3)
    features = Add(point, skip)
    pooled = GlobalAveragePool(features)
    squeezed = Conv(pooled, w4)
    flat = Flatten(squeezed)
    scores = Gemm<transB = 1>(flat, w5, b5)
}
"""
_WEIGHTS = {
    "w0": (32, 3, 3, 3), "b0": (32,), "w1": (32, 32, 3, 3), "b1": (32,), "w2": (32, 1, 3, 3), "w3": (48, 32, 1, 1),
    "b3": (48,), "w4": (48, 48, 1, 1), "w5": (10, 48), "b5": (10,), "skip": (1, 48, 1, 1),
}  # fmt: skip


def net(**weights):
    """Return the network; `weights` take the place of random ones."""
    model = onnx.parser.parse_model(_TEXT)
    generator = np.random.default_rng(0)
    for name, shape in _WEIGHTS.items():
        spread = np.sqrt(2 / max(1, np.prod(shape[1:]))) if len(shape) > 1 else 0.1
        drawn = (generator.standard_normal(shape) * spread).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights.get(name, drawn), name))
    for name, value in (("zero", 0), ("six", 6)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, np.float32), name))
    return model


def written(folder, **weights):
    onnx_files.save(net(**weights), folder)
    return folder


def images(count, seed=0, rows=1):
    """Return samples of smooth images, with `rows` images each."""
    generator = np.random.default_rng(seed)
    samples = []
    for _ in range(count):
        coarse = generator.standard_normal((rows, 3, 8, 8)).repeat(4, axis=2).repeat(4, axis=3)
        samples.append({"image": (coarse + 0.1 * generator.standard_normal(coarse.shape)).astype(np.float32)})
    return samples
