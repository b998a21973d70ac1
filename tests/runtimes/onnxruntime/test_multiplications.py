import graphs
import numpy as np
import onnx
import pytest

from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import matmul_nbits, multiplications
from engine.runtimes.onnxruntime.providers import ON_CPU

IMAGE = "float[b, 4, 9, 9] x"


def counted(folder, inputs):
    return multiplications.multiplications(folder, inputs, provider=ON_CPU)


def written(folder, text, **weights):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> net {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx_files.save(model, folder)
    return folder


def drawn(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "weights", "shape", "count"),
    [
        ("(float[b, s, 8] x) => (float[b, s, 6] y) { y = MatMul(x, w) }", (8, 6), (2, 5, 8), 2 * 5 * 8 * 6),
        ("(float[b, 8] x) => (float[b, 6] y) { y = Gemm<transB = 1>(x, w) }", (6, 8), (3, 8), 3 * 8 * 6),
        ("(float[8, b] x) => (float[b, 6] y) { y = Gemm<transA = 1>(x, w) }", (8, 6), (8, 3), 3 * 8 * 6),
        (f"({IMAGE}) => (float[b, 6, 7, 7] y) {{ y = Conv(x, w) }}", (6, 4, 3, 3), (2, 4, 9, 9), 2 * 6 * 49 * 36),
        (f"({IMAGE}) => (float[b, 4, 7, 7] y) {{ y = Conv<group = 4>(x, w) }}", (4, 1, 3, 3), (1, 4, 9, 9), 4 * 49 * 9),
        ('(float[b, 8] x) => (float[b, 6] y) { y = Einsum<equation = "bi,io->bo">(x, w) }', (8, 6), (3, 8), 48),
        ("(float[b, 8] x) => (float[b, 8] y) { y = Add(x, w) }", (8,), (3, 8), None),
    ],
)  # fmt: skip
def test_the_multiplications_of_an_operator_follow_from_its_shapes(text, weights, shape, count, tmp_path):
    counts = counted(written(tmp_path / "model", text, w=drawn(*weights)), {"x": drawn(*shape)})
    assert counts == ({} if count is None else {"fp32": count})


def test_a_recurrent_layer_multiplies_its_input_and_its_state_in_each_step(tmp_path):
    text = "(float[s, b, 5] x) => (float[s, d, b, 4] y) { y = LSTM<hidden_size = 4>(x, w, r) }"
    folder = written(tmp_path / "model", text, w=drawn(1, 16, 5), r=drawn(1, 16, 4))
    assert counted(folder, {"x": drawn(3, 2, 5)}) == {"fp32": 3 * 2 * 16 * (5 + 4)}
    from onnxruntime.quantization import QuantType, quantize_dynamic

    (tmp_path / "int8").mkdir()
    quantize_dynamic(folder / "model.onnx", tmp_path / "int8" / "model.onnx", weight_type=QuantType.QInt8)
    assert counted(tmp_path / "int8", {"x": drawn(3, 2, 5)}) == {"int8": 3 * 2 * 16 * (5 + 4)}


def test_attention_of_onnx_multiplies_queries_with_keys_and_scores_with_values(tmp_path):
    text = "(float[b, s, 8] q, float[b, t, 8] k, float[b, t, 8] v) => (float[b, s, 8] y)"
    body = "{ y = Attention<q_num_heads = 2, kv_num_heads = 2>(q, k, v) }"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> net {text} {body}')
    onnx_files.save(model, tmp_path / "model")
    counts = counted(tmp_path / "model", {"q": drawn(2, 3, 8), "k": drawn(2, 5, 8), "v": drawn(2, 5, 8)})
    assert counts == {"fp32": 2 * (2 * 3 * 5 * 8)}


def test_a_quantized_model_computes_in_integers(tmp_path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    source = graphs.write(tmp_path / "source", graphs.layers())
    (tmp_path / "int8").mkdir()
    quantize_dynamic(source / "model.onnx", tmp_path / "int8" / "model.onnx", weight_type=QuantType.QInt8)
    plain, quantized = (counted(folder, {"x": drawn(3, 64)}) for folder in (source, tmp_path / "int8"))
    assert list(plain) == ["fp32"]
    assert quantized == {"int8": plain["fp32"]}


@pytest.mark.parametrize(("level", "computed"), [(0, "fp32"), (4, "int8")])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_product_with_packed_weights_names_the_weights_and_what_multiplies(level, computed, bits, tmp_path):
    codes = np.random.default_rng(0).integers(0, 256, (6, 2, 32 * bits // 8), dtype=np.uint8)
    sizes = f"K = 64, N = 6, bits = {bits}, block_size = 32, accuracy_level = {level}"
    text = f"""<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]>
    net (float[b, s, 64] x) => (float[b, s, 6] y) {{
        y = com.microsoft.MatMulNBits<{sizes}>(x, codes, scales)
    }}"""
    model = onnx.parser.parse_model(text)
    scales = np.ones((6, 2), np.float32)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in (("codes", codes), ("scales", scales))
    )
    onnx_files.save(model, tmp_path / "model")
    counts = counted(tmp_path / "model", {"x": drawn(2, 5, 64)})
    assert counts == {f"{computed} with int{bits} weights": 2 * 5 * 64 * 6}


def test_an_integer_kernel_is_claimed_only_where_rounding_shows(tmp_path, monkeypatch):
    monkeypatch.setattr(matmul_nbits, "BY_INTEGERS", 1)  # a level at which no kernel rounds
    matmul_nbits._has_integer_kernel.cache_clear()
    assert not matmul_nbits._has_integer_kernel(4, 32)
    matmul_nbits._has_integer_kernel.cache_clear()


@pytest.mark.parametrize(("kind", "bits"), [(onnx.TensorProto.INT4, 4), (onnx.TensorProto.INT8, 8)])
def test_a_product_that_onnx_runtime_makes_of_quantized_weights_is_counted_by_their_bits(kind, bits, tmp_path):
    scales = onnx.numpy_helper.from_array(np.full((2, 32), 0.1, np.float32), "s")
    weight = onnx.helper.make_tensor("w", kind, [64, 32], [number % 7 - 3 for number in range(64 * 32)])
    nodes = [
        onnx.helper.make_node("DequantizeLinear", ["w", "s"], ["f"], axis=0, block_size=32),
        onnx.helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    ends = [("x", graphs.FLOAT, ["b", 64])], [("y", graphs.FLOAT, ["b", 32])]
    folder = graphs.write(tmp_path / "model", graphs.graph(nodes, *ends, [weight, scales], opset=21, ir=10))
    [(precision, count)] = counted(folder, {"x": drawn(3, 64)}).items()
    assert (precision.partition(" with ")[2], count) == (f"int{bits} weights", 3 * 64 * 32)
