import convolutional
import numpy as np
import onnx
import pytest

from engine.kit.onnx import onnx_files
from engine.kit.quantization.report import QuantizeReport, StaticReport
from engine.kit.quantization.static import static_int8
from engine.runtimes.onnxruntime import multiplications
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime.providers import ON_CPU


def quantized(folder, samples=None, **weights):
    fused = convolutional.written(folder / "fused", **weights)
    samples = samples or convolutional.images(16)
    # 7 bits, as on CPUs without VNNI: with 8 bits, layers whose sums saturate there are left out.
    report = static_int8.quantize(fused, folder / "out", samples, reduce_range=True)
    return report, folder / "out"


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """The network of tests/support/convolutional.py in int8, made once: its folder, and the report."""
    folder = tmp_path_factory.mktemp("net")
    return folder, quantized(folder)[0]


def cosine(first, second, name):
    one, two = (ort.session(folder, threads=1) for folder in (first, second))
    answers = [[ort.run(each, image)[name].ravel() for image in convolutional.images(6, seed=7)] for each in (one, two)]
    return min(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in zip(*answers, strict=True))


def test_the_dense_layers_are_in_int8_and_the_answers_stay(net):
    folder, report = net
    assert (report.quantized, report.of) == ({"Conv": 2, "Gemm": 1}, {"Conv": 5, "Gemm": 1})
    assert {left.reason for left in report.left} == {
        "with 27 inputs per output it is slower in int8",
        "depthwise convolutions are slower in int8",
        "its window stands at one place only, so that it is too small to gain",
    }
    assert (report.samples, report.held_out) == (12, 4)
    assert report.cosine.worst > 0.99
    for name in ("scores", "features"):
        assert cosine(folder / "fused", folder / "out", name) > 0.99
    assert report.bytes[1] < 0.6 * report.bytes[0]
    read = QuantizeReport.from_json(report.to_json())
    assert isinstance(read, StaticReport)
    assert read == report
    stored = onnx_files.load(folder / "out").graph.initializer
    weights = [onnx.numpy_helper.to_array(tensor) for tensor in stored if tensor.data_type == onnx.TensorProto.INT8]
    assert max(int(np.abs(weight).max()) for weight in weights) == 63, "7 bits"


def test_the_kernels_multiply_integers_as_the_report_says(net):
    folder, report = net
    counts = multiplications.multiplications(folder / "out", convolutional.images(1)[0], provider=ON_CPU)
    assert counts.operators == {"Conv": {"int8": 2, "fp32": 3}, "Gemm": {"int8": 1}}
    assert counts["int8"] / sum(counts.values()) == pytest.approx(report.share, abs=1e-4)
    assert report.share > 0.8


def test_the_served_graph_has_no_activation_function_that_a_range_computes(net, tmp_path):
    ort.optimize(net[0] / "out", tmp_path, level="extended")
    operators = [node.op_type for node in onnx_files.nodes(onnx_files.load_graph(tmp_path))]
    assert operators.count("QLinearConv") == 2
    assert "Clip" not in operators
    assert "QuickGelu" in operators  # a Sigmoid and its Mul would be dequantized one by one


def test_the_same_samples_give_the_same_bytes(net, tmp_path):
    _, again = quantized(tmp_path)
    assert (net[0] / "out" / onnx_files.MODEL).read_bytes() == (again / onnx_files.MODEL).read_bytes()


def test_rows_of_a_batch_calibrate_like_samples(tmp_path):
    rows = convolutional.images(1, rows=16)
    report, _ = quantized(tmp_path, rows)
    assert (report.samples, report.held_out) == (12, 4)


def test_a_layer_that_harms_is_left_out(tmp_path):
    """One huge channel takes all of a tensor's range, and the layer behind it gives this channel no weight."""
    generator = np.random.default_rng(1)
    before = generator.standard_normal((32, 1, 3, 3)).astype(np.float32) / 3
    before[0] *= 5e4
    behind = generator.standard_normal((48, 32, 1, 1)).astype(np.float32) / 6
    behind[:, 0] = 0
    report, out = quantized(tmp_path, w2=before, w3=behind)
    assert report.quantized == {"Conv": 1, "Gemm": 1}
    (left,) = [each for each in report.left if each.error is not None]
    assert (left.name.startswith("Conv"), left.reason.partition(":")[0]) == (True, "sensitive")
    assert cosine(tmp_path / "fused", out, "features") > 0.99
    assert len(report.path) > 1


def patches(folder, *, convolutions=1):
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    vit (float[batch, 3, 32, 32] image) => (float[batch, 4, 64] states) {
        patches = Conv<strides = [16, 16]>(image, w)
        rows = Reshape(patches, shape)
        tokens = Transpose<perm = [0, 2, 1]>(rows)
        first = LayerNormalization(tokens, scale)
        states = LayerNormalization(first, scale)
    }""")
    arrays = {"w": np.ones((64, 3, 16, 16), "float32"), "scale": np.ones(64, "float32"), "shape": np.array([0, 64, 4])}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    again = model.graph.node[0]
    for number in range(1, convolutions):
        model.graph.node.append(onnx.helper.make_node("Conv", again.input, [f"again {number}"], strides=[16, 16]))
    onnx_files.save(model, folder)
    return folder


def test_a_vision_transformer_is_static_with_samples_and_a_hybrid_one_always(tmp_path):
    assert static_int8.suits(convolutional.written(tmp_path / "net"))
    assert not static_int8.suits(patches(tmp_path / "vit"))
    assert static_int8.suits(tmp_path / "vit", sampled=True)
    assert static_int8.suits(patches(tmp_path / "hybrid", convolutions=2))


def test_weights_in_constant_nodes_count_as_weights(tmp_path):
    model = convolutional.net()
    stored = list(model.graph.initializer)
    del model.graph.initializer[:]
    nodes = [onnx.helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in stored]
    nodes += model.graph.node
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx_files.save(model, tmp_path / "fused")
    assert static_int8.suits(tmp_path / "fused")
    samples = convolutional.images(8)
    report = static_int8.quantize(tmp_path / "fused", tmp_path / "out", samples, reduce_range=True)
    assert report.quantized == {"Conv": 2, "Gemm": 1}
