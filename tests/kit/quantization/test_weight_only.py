"""Weight-only quantization of whole models: decoders with a past, encoders, and models with nothing to quantize."""

import logging

import generators
import graphs
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from engine.kit.onnx import ir_models, mapped_weights, onnx_files
from engine.kit.quantization import weight_only
from engine.kit.quantization.precisions import LeftAloneError
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export
from engine.steps.fuse import Fuse
from engine.steps.quantize import Quantize


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    generators.checkpoint(folder / "checkpoint", "gpt2")
    Export().run(folder / "exported", checkpoint=folder / "checkpoint")
    return folder / "exported"


def test_a_decoder_has_the_same_bytes_twice_and_on_any_path(exported, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    outs = tmp_path / "one", tmp_path / "elsewhere" / "two"
    reports = [weight_only.quantize(exported, out, bits=4) for out in outs]
    assert reports[0] == reports[1]
    assert reports[0].quantized["MatMul"] == 9
    assert (outs[0] / "model.onnx").read_bytes() == (outs[1] / "model.onnx").read_bytes()


def test_weights_above_the_limit_lie_in_a_file_of_their_own(exported, tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_weights, "LEAST", 1 << 8)
    monkeypatch.setattr(onnx_files.save, "__kwdefaults__", {"threshold": 1 << 12})
    weight_only.quantize(exported, tmp_path / "out", bits=8)
    model = onnx_files.load_graph(tmp_path / "out")
    assert onnx_files.data_files(model) == ["model.onnx.data"]


def test_an_encoder_keeps_fused_attention_and_says_so(tmp_path):
    Fuse().run(tmp_path / "fused", shaped=graphs.tiny("bert"))
    report = Quantize(way="int4 weights").run(tmp_path / "out", fused=tmp_path / "fused")
    assert report.quantized["MatMul"] == 7, "the classifier of two labels is left alone"
    assert report.left == ("2 Attention", "1 EmbedLayerNormalization", "1 MatMul")


def test_a_model_without_linear_layers_is_left_alone(tmp_path):
    source = graphs.write(tmp_path / "source", graphs.convolutions())
    with pytest.raises(LeftAloneError, match="no linear layer"):
        weight_only.quantize(source, tmp_path / "out", bits=4)
    assert Quantize(way="int4 weights").run(tmp_path / "left", fused=source).unquantized


def test_a_quantized_model_is_not_quantized_again(exported, tmp_path):
    weight_only.quantize(exported, tmp_path / "once", bits=4)
    report = Quantize(way="int8 weights").run(tmp_path / "twice", fused=tmp_path / "once")
    assert report.unquantized.startswith("it is quantized already (")


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
    counts = weight_only.replace_readers(changed, bits)
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


HEAD = '<ir_version: 9, opset_import: ["" : 17]> net '
PRODUCT = "(float[b, 64] x) => (float[b, n] y) { y = MatMul(x, w) }"


def readers(text, *shape):
    """Return the numbers of products, of products with the transpose, and of look-ups that read the matrix w."""
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(shape, np.float32), "w"))
    every = list(weight_only.readers_of(ir_models.of(model).graph).values())
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


def weight(inputs=96, outputs=40):
    return np.random.default_rng(3).standard_normal((inputs, outputs)).astype(np.float32)


def numbers(packed, bits, inputs):
    """Return the float32 weight [inputs, outputs] that a packed weight stands for."""

    def apart(codes):
        return codes if bits == 8 else np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)

    codes, zeros = apart(packed.codes).astype(np.float32), apart(packed.zero_points)[:, : packed.scales.shape[1], None]
    return ((codes - zeros) * packed.scales[..., None]).reshape(len(codes), -1)[:, :inputs].T


@pytest.mark.parametrize(("bits", "steps"), [(4, 15), (8, 255)])
@pytest.mark.parametrize("inputs", [96, 70])
def test_each_number_is_within_one_step_of_its_block(bits, steps, inputs):
    values = weight(inputs)
    packed = weight_only.pack(values, bits)
    assert packed.codes.shape == (40, 3, 32 * bits // 8)
    spread = values.max() - values.min()
    assert np.abs(numbers(packed, bits, inputs) - values).max() <= spread / steps


@pytest.mark.parametrize("bits", [4, 8])
def test_a_weight_that_is_read_in_parts_or_transposed_is_the_same(bits, monkeypatch):
    values = weight()
    whole = weight_only.pack(values, bits)
    monkeypatch.setattr(weight_only, "_NUMBERS", 96 * 7)
    for packed in (
        weight_only.pack(values, bits),
        weight_only.pack(np.ascontiguousarray(values.T), bits, outputs_first=True),
    ):
        for part in ("codes", "scales", "zero_points"):
            assert np.array_equal(getattr(packed, part), getattr(whole, part))


def test_the_library_changes_no_other_packages_log():
    level = logging.getLogger().level
    weight_only._quantize.cache_clear()
    weight_only.pack(weight(), 4)
    assert logging.getLogger().level == level
