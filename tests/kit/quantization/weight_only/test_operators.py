"""Nodes that read weights in blocks: near the original, each weight once, and heads left alone."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.quantization.weight_only import operators
from engine.runtimes.onnxruntime import session as ort

TIED = """<ir_version: 9, opset_import: ["" : 17]> net (int64[b, s] ids) => (float[b, s, 600] logits) {
    x = Gather(words, ids)
    h = MatMul(x, inner)
    out = Transpose(words)
    logits = MatMul(h, out)
}"""
IDS = np.arange(24).reshape(2, 12) * 7


def drawn(*shape):
    return np.random.default_rng(len(shape) + shape[0]).standard_normal(shape).astype(np.float32)


def model_of(text, **weights):
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
    return model


def replaced(model, bits):
    """Return the model with packed weights, and how many nodes were replaced."""
    changed = ir_models.of(model)
    counts = operators.replace(changed, bits)
    return ir_models.proto(changed), counts


def answer(model, folder, inputs):
    onnx_files.save(onnx_files.copied(model), folder)
    [value] = ort.run(ort.session(folder, threads=1), inputs).values()
    return value


def cosine(first, second):
    return float((first * second).sum() / np.linalg.norm(first) / np.linalg.norm(second))


@pytest.mark.parametrize(("bits", "least"), [(4, 0.985), (8, 0.9998)])
@pytest.mark.parametrize("width", [64, 96])
def test_a_table_that_is_tied_to_the_output_layer_keeps_its_answers(bits, least, width, tmp_path):
    model = model_of(TIED, words=drawn(600, width), inner=drawn(width, width))
    before = answer(model, tmp_path / "before", {"ids": IDS})
    model, counts = replaced(model, bits)
    assert cosine(before, answer(model, tmp_path / "after", {"ids": IDS})) > least
    stored = {tensor.name for tensor in model.graph.initializer}
    if width == 64:
        assert counts == {"Gather": 1, "MatMul": 2}
        assert len([name for name in stored if name.startswith("words")]) == 4, "codes, scales, zero points, a shape"
    else:
        assert counts == {"MatMul": 2}, "ONNX Runtime 1.24 misreads a table of an odd number of 4-bit blocks"
        assert "words" in stored


def test_two_layers_share_one_weight_and_a_head_of_two_classes_keeps_its_own(tmp_path):
    text = """<ir_version: 9, opset_import: ["" : 17]> net (float[b, 64] x) => (float[b, 2] y) {
        h = MatMul(x, w)
        g = MatMul(h, w)
        y = MatMul(g, head)
    }"""
    model = model_of(text, w=drawn(64, 64), head=drawn(64, 2))
    model, counts = replaced(model, 4)
    assert counts == {"MatMul": 2}
    assert [node.op_type for node in model.graph.node] == ["MatMulNBits", "MatMulNBits", "MatMul"]
    assert len({node.input[1] for node in model.graph.node[:2]}) == 1
    assert [tensor.name for tensor in model.graph.initializer if tensor.data_type == 1] == ["head", "w_scales"]
    answer(model, tmp_path, {"x": drawn(3, 64)})


def test_a_product_of_two_inputs_and_a_half_precision_weight_stay(tmp_path):
    text = """<ir_version: 9, opset_import: ["" : 17]> net (float[b, 64] x, float[64, 64] w) => (float[b, 64] y) {
        y = MatMul(x, w)
    }"""
    model, counts = replaced(model_of(text), 4)
    assert counts == {}
    assert {entry.domain for entry in model.opset_import} == {""}
