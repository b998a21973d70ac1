"""Q/DQ: what is quantized, what it costs, and what is handed on as it came."""

from __future__ import annotations

import convolutional
import graphs
import numpy as np
import onnx
import pytest
from onnx import TensorProto, checker, helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.quantization import activation_ranges
from engine.kit.quantization.qdq import qdq
from engine.runtimes.onnxruntime import session as ort

CHANNELS = 128


def block(*, residual=False, products=True, rms=False):
    """Return a normalization, two readers of it, a product of computed factors, and a last layer."""
    gain = np.ones(CHANNELS, np.float32)
    gain[5] = 40  # an outlier, as transformers have them
    norm = "Mul(x, gain)" if rms else "LayerNormalization(x, gain, shift)"
    text = (
        f"[norm] normal = {norm} [query] a = MatMul(normal, left) [key] b = MatMul(normal, right) "
        "bt = Transpose<perm = [0, 2, 1]>(b) [scores] scores = MatMul(a, bt) seen = Softmax(scores) "
        f"[mixed] mixed = MatMul(seen, {'normal' if products and residual else 'b'}) "
        f"[last] c = MatMul(mixed, last) y = Add(c, {'normal' if residual else 'end'})"
    )
    shape = f"float[batch, sequence, {CHANNELS}]"
    return graphs.parsed(
        f"({shape} x) => ({shape} y) {{ {text} }}", opset=20, ir=9, gain=gain,
        shift=graphs.weight("shift", CHANNELS, seed=9), end=graphs.weight("end", CHANNELS, seed=8),
        **{name: small(name, seed) for seed, name in enumerate(("left", "right", "last"))},
    )  # fmt: skip


def small(name, seed):
    values = np.random.default_rng(seed).standard_normal((CHANNELS, CHANNELS)) / CHANNELS**0.5
    values *= 1 if name == "last" else 0.05  # or attention is all or nothing, and the least error turns it over
    return numpy_helper.from_array(values.astype(np.float32), name)


def samples(count=16):
    generator = np.random.default_rng(7)
    return [{"x": generator.standard_normal((1, 3 + n % 5, CHANNELS)).astype(np.float32)} for n in range(count)]


def quantized(tmp_path, model, kind="int8", inputs=None):
    passes, report = qdq.quantize(graphs.write(tmp_path / "model", model), inputs or samples(), kind, tmp_path)
    model_after = graphs.whole(ir_models.proto(passes.model), tmp_path / "whole")
    checker.check_model(model_after, full_check=True)
    return model_after, report


def operators(model):
    return [node.op_type for node in model.graph.node]


def cosines(tmp_path, first, second):
    errors = []
    sessions = []
    for number, model in enumerate((first, second)):
        folder = graphs.write(tmp_path / str(number), model)
        sessions.append(ort.session(folder, threads=1, level="disabled"))
    for sample in samples(40)[20:]:
        a, b = (ort.run(session, sample)["y"].ravel() for session in sessions)
        errors.append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    return errors


@pytest.mark.parametrize("kind", ["int8", "fp8", "int4"])
def test_the_quantized_graph_answers_like_the_original(tmp_path, kind):
    changed, report = quantized(tmp_path, block(), kind)
    assert min(cosines(tmp_path, block(), changed)) > (0.9 if kind == "int4" else 0.99)
    assert report.quantized.matmuls


def test_activations_are_quantized_once_for_all_that_read_them_and_weights_are_stored_in_int8(tmp_path):
    changed, _ = quantized(tmp_path, block())
    assert operators(changed).count("QuantizeLinear") == 2
    stored = {tensor.name: tensor for tensor in changed.graph.initializer}
    weights = [tensor for tensor in stored.values() if tensor.data_type == TensorProto.INT8 and len(tensor.dims) == 2]
    assert len(weights) == 3
    assert not {"left", "right", "last"} & set(stored)
    for node in changed.graph.node:
        if node.op_type in {"QuantizeLinear", "DequantizeLinear"} and len(node.input) == 3:
            assert not numpy_helper.to_array(stored[node.input[2]]).any()  # TensorRT takes symmetric ones only


@pytest.mark.parametrize("rms", [False, True], ids=["LayerNormalization", "Mul"])
def test_smoothing_goes_into_the_normalization_that_nobody_else_reads(tmp_path, rms):
    changed, report = quantized(tmp_path, block(rms=rms))
    norm = next(node for node in changed.graph.node if node.name == "norm")
    assert norm.input[1] == "gain_smoothed"
    assert report.smoothed >= 1
    assert sum(name.startswith("normal_smoothed") for node in changed.graph.node for name in node.output) == 0


def test_smoothing_is_a_multiplication_where_a_residual_reads_the_tensor_too(tmp_path):
    changed, _ = quantized(tmp_path, block(residual=True))
    assert [node.input[0] for node in changed.graph.node if node.op_type == "Mul"][:1] == ["normal"]
    assert next(node for node in changed.graph.node if node.name == "norm").input[1] == "gain"


def test_smoothing_is_what_makes_outliers_bearable(tmp_path, monkeypatch):
    changed, _ = quantized(tmp_path / "with", block(residual=True))
    monkeypatch.setitem(activation_ranges.choose.__kwdefaults__, "alphas", (None,))
    plain, report = quantized(tmp_path / "without", block(residual=True))
    assert report.smoothed == 0
    losses = [
        1 - min(cosines(tmp_path / name, block(residual=True), model)) for name, model in (("a", changed), ("b", plain))
    ]
    assert losses[0] < losses[1] / 2


def test_the_report_tells_the_share_of_the_work_and_why_the_rest_was_left(tmp_path):
    _, report = quantized(tmp_path, block())
    weights, products = 3 * 128 * CHANNELS * CHANNELS, 2 * 128 * 128 * CHANNELS
    assert report.int8.share == pytest.approx(weights / (weights + products), abs=1e-4)
    assert list(report.int8.matmuls) == ["query", "key", "last"]
    assert {entry.name: entry.reason for entry in report.int8.left} == {
        "scores": "both factors are computed: no weights",
        "mixed": "both factors are computed: no weights",
    }
    assert report.cosine.worst <= report.cosine.mean
    assert (report.samples, report.held_out) == (12, 4)


def test_the_same_samples_give_the_same_bytes(tmp_path):
    first, second = (quantized(tmp_path / name, block())[0] for name in ("first", "second"))
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)


def test_scales_are_numbers_that_half_precision_holds(tmp_path):
    changed, _ = quantized(tmp_path, block())
    scales = {node.input[1] for node in changed.graph.node if node.op_type in {"QuantizeLinear", "DequantizeLinear"}}
    for tensor in changed.graph.initializer:
        if tensor.name in scales:
            values = numpy_helper.to_array(tensor)
            assert (values.astype(np.float16).astype(np.float32) == values).all()


def test_int4_leaves_what_does_not_divide_into_blocks(tmp_path):
    _, report = quantized(tmp_path, graphs.layers(features=64, hidden=256), "int4", features())
    assert [entry.reason for entry in report.int4.left] == ["its 64 inputs do not divide into blocks of 128"]
    assert len(report.int4.matmuls) == 1


def test_a_graph_of_an_older_opset_is_written_anew(tmp_path):
    changed, report = quantized(tmp_path, graphs.layers(), "int8", features())
    assert changed.opset_import[0].version >= 19
    assert len(report.int8.matmuls) == 2


def features():
    return [{"x": row[None]} for row in np.random.default_rng(3).standard_normal((12, 64)).astype(np.float32)]


def test_a_graph_without_matrices_is_handed_on(tmp_path):
    model = graphs.parsed("(float[batch, 3, 16, 16] images) => (float[batch, 3, 16, 16] y) { y = Relu(images) }")
    changed, report = quantized(tmp_path, model, inputs=[{"images": np.zeros((1, 3, 16, 16), np.float32)}] * 8)
    assert report.unquantized == "it has no MatMul or convolution with constant weights that could be quantized"
    assert operators(changed) == ["Relu"]


def test_without_samples_nothing_is_calibrated(tmp_path):
    folder = graphs.write(tmp_path, block())
    passes, report = qdq.quantize(folder, [], "int8", tmp_path)
    assert report.unquantized == "there are no samples to calibrate on"
    assert "QuantizeLinear" not in [node.op_type for node in passes.model.graph]


def test_dense_convolutions_are_in_int8_with_a_scale_per_output_channel(tmp_path):
    model, report = quantized(tmp_path, convolutional.net(), inputs=convolutional.images(2, rows=8))
    assert len(report.int8.matmuls) == 5  # four convolutions, and the MatMul that a Gemm becomes
    assert [each.reason for each in report.int8.left] == ["it is a grouped convolution"]
    assert (report.int8.convolutions, report.samples, report.held_out) == (0, 12, 4)
    producers = {name: node for node in model.graph.node for name in node.output}
    factors = [[producers.get(name) for name in n.input[:2]] for n in model.graph.node if n.op_type == "Conv"]
    in_int8 = [pair for pair in factors if all(node and node.op_type == "DequantizeLinear" for node in pair)]
    assert len(in_int8) == 4
    assert {helper.get_node_attr_value(weight, "axis") for _, weight in in_int8} == {0}
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for activation, weight in in_int8:
        codes, scales = (stored[name] for name in weight.input)
        assert (codes.dtype, scales.shape) == (np.int8, codes.shape[:1])
        assert stored[activation.input[2]] == 0  # symmetric, as TensorRT needs it
    assert report.cosine.worst > 0.99


def test_convolutions_stay_in_other_types_and_are_counted(tmp_path):
    _, report = quantized(tmp_path, convolutional.net(), kind="fp8", inputs=convolutional.images(8))
    assert report.fp8.convolutions == 5
    assert len(report.fp8.matmuls) == 1


def test_a_residual_addition_behind_a_convolution_reads_the_quantized_summand(tmp_path):
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 19]>
    net (float[batch, 8, 8, 8] x) => (float[batch, 8, 8, 8] y) {
        a = Relu(x)
        b = Conv<pads = [1, 1, 1, 1]>(a, w1)
        c = Relu(b)
        d = Conv<pads = [1, 1, 1, 1]>(c, w2)
        y = Add(a, d)
    }""")
    generator = np.random.default_rng(3)
    for name in ("w1", "w2"):
        weight = (generator.standard_normal((8, 8, 3, 3)) / 8).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    images = [{"x": generator.standard_normal((1, 8, 8, 8)).astype(np.float32)} for _ in range(8)]
    after, report = quantized(tmp_path, model, inputs=images)
    assert len(report.int8.matmuls) == 2
    producers = {name: node.op_type for node in after.graph.node for name in node.output}
    (addition,) = (node for node in after.graph.node if node.op_type == "Add")
    assert [producers[name] for name in addition.input] == ["DequantizeLinear", "Conv"]


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert", "albert", "deberta-v2", "mpnet"])
@pytest.mark.sample(3)
def test_transformers_of_many_kinds_are_quantized(tmp_path, architecture):
    exported = graphs.tiny(architecture, "feature-extraction")
    inputs_of_model = onnx_files.inputs(onnx_files.load_graph(exported))
    generator = np.random.default_rng(0)
    rows = [text(*generator.integers(5, 60, 3 + number % 7)) for number in range(12)]
    inputs = [{name: row.get(name, row["input_ids"] * 0) for name in inputs_of_model} for row in rows]
    passes, report = qdq.quantize(exported, inputs, "int8", tmp_path)
    checker.check_model(graphs.whole(ir_models.proto(passes.model), tmp_path / "whole"))
    assert {entry.reason for entry in report.int8.left} == {"both factors are computed: no weights"}
    assert report.cosine.mean > 0.98


def text(*tokens, mask=None):
    ids = np.array([tokens], np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids) if mask is None else np.array([mask], np.int64)}


def test_a_shortened_text_keeps_its_first_and_last_token():
    texts = [text(101, 7, 8, 9, 10, 11, 12, 102) for _ in range(5)]
    rows = [sample["input_ids"].tolist()[0] for sample in qdq.with_shortened(texts, every=1)]
    assert rows[1::2] == [
        [101, 7, 102],
        [101, 7, 8, 102],
        [101, 7, 8, 9, 102],
        [101, 7, 8, 9, 10, 102],
        [101, 7, 102],
    ]


def test_what_is_short_padded_or_no_text_gets_no_copy():
    images = {"images": np.zeros((1, 3, 8, 8), np.float32)}
    padded = text(101, 7, 8, 9, 102, 0, 0, mask=[1, 1, 1, 1, 1, 0, 0])
    samples = [images, padded, text(101, 7, 102)]
    assert qdq.with_shortened(samples, every=1) == samples
