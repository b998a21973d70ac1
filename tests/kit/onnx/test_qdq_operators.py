"""NVIDIA's own Q/DQ operators become ONNX's of the same meaning, and the types of all of them are found."""

from pathlib import Path

import graphs
import numpy as np
import onnx
import onnxruntime
import pytest
import typed_graphs
from onnx import helper
from typed_graphs import F8, F16, F32, I4, I8, U8, WIDE

from engine.errors import StepError
from engine.kit.onnx import qdq_operators

FILES = Path(typed_graphs.__file__).parent / "modelopt"


def outputs(model):
    """Run a model without optimizations, as the reference does."""
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    [given] = session.get_inputs()
    shape = [size if isinstance(size, int) else 2 for size in given.shape]
    kind = np.float16 if "float16" in given.type else np.float32
    return session.run(None, {given.name: np.random.default_rng(0).standard_normal(shape).astype(kind)})[0]


def test_the_file_with_nvidias_operators_computes_what_its_twin_with_onnxs_computes():
    twin = onnx.load(FILES / "int4.onnx")
    theirs = onnx.load(FILES / "int4_nvidia.onnx")
    assert qdq_operators.has_nvidias(theirs)
    assert not qdq_operators.has_nvidias(twin)
    ours = qdq_operators.standardized(theirs)
    onnx.checker.check_model(ours)
    assert {entry.domain for entry in ours.opset_import} == {""}
    np.testing.assert_array_equal(outputs(ours), outputs(twin))


def test_blocks_that_nvidias_operators_leave_to_the_shapes_are_stated():
    model = qdq_operators.standardized(onnx.load(FILES / "int4_nvidia_rtn.onnx"))
    onnx.checker.check_model(model, full_check=True)
    quantizing = [node for node in model.graph.node if node.op_type.lower().endswith("quantizelinear")]
    assert len(quantizing) == 4
    for node in quantizing:
        assert {each.name: each.i for each in node.attribute} == {"axis": 0, "block_size": 16}
    before = onnx.load(FILES / "mlp.onnx")
    difference = np.abs(outputs(model) - outputs(before))
    assert 0.001 < difference.mean() < 0.2  # int4 weights are near, and not the same


def fp8_of(opset):
    """Return a graph as Model Optimizer exported fp8 from PyTorch: no zero points, and the operators in `trt`."""
    text = "q = trt.TRT_FP8QuantizeLinear(a, s) d = trt.TRT_FP8DequantizeLinear(q, s) y = MatMul(d, w)"
    stored = {"s": np.float32(0.01), "w": np.eye(64, dtype=np.float32)}
    return graphs.parsed(
        f"(float[64, 64] a) => (float[64, 64] y) {{ {text} }}", opset=opset, ir=10, domains=("trt",), **stored
    )


@pytest.mark.parametrize("opset", [13, 17, 19, 21])
def test_fp8_without_zero_points_rounds_as_fp8_does_in_any_opset(opset):
    model = qdq_operators.standardized(fp8_of(opset))
    onnx.checker.check_model(model, full_check=True)
    random = np.random.default_rng(0).standard_normal(WIDE).astype(np.float32)
    import ml_dtypes

    expected = (random / np.float32(0.01)).clip(-448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32) * 0.01
    np.testing.assert_allclose(outputs(model), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", [F8, I4])
def test_weights_in_the_domain_of_nvidia_are_read(kind):
    model = qdq_operators.standardized(typed_graphs.of_nvidia_domain(kind))
    onnx.checker.check_model(model, full_check=True)
    assert {node.domain for node in model.graph.node} == {""}


def test_scales_that_fit_no_blocks_and_scales_without_a_shape_are_refused():
    nodes = [helper.make_node("TRT_INT4DequantizeLinear", ["w", "s"], ["v"], domain="trt"),
             helper.make_node("MatMul", ["a", "v"], ["y"])]  # fmt: skip
    stored = [typed_graphs.constant("w", I4, *WIDE), typed_graphs.constant("s", F16, 4, 4)]
    with pytest.raises(StepError, match="do not fit its weights") as caught:
        qdq_operators.standardized(typed_graphs.graph(nodes, [("a", F16, WIDE)], (F16, WIDE), stored))
    assert list(caught.value.facts) == ["weights [64, 64], scales [4, 4]"]
    model = fp8_of(21)
    model.graph.input.add().CopyFrom(helper.make_tensor_value_info("s", F32, ()))
    del model.graph.initializer[0]
    with pytest.raises(StepError, match="the shape of a scale is not stated: s"):
        qdq_operators.standardized(model)


def test_a_model_that_cannot_be_converted_is_refused_with_the_way_forward():
    model = fp8_of(13)
    model.graph.node.add().CopyFrom(helper.make_node("Unheard", ["y"], ["z"]))
    with pytest.raises(StepError) as caught:
        qdq_operators.standardized(model)
    assert "--opset 21" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("mlp", ()),
        ("int8", ("int8",)),
        ("int8_fp32", ("int8",)),
        ("fp8", ("fp8",)),
        ("fp8_fp32", ("fp8",)),
        ("int4", ("int4",)),
        ("int4_nvidia", ("int4",)),
        ("int4_nvidia_rtn", ("int4",)),
    ],
)
def test_the_types_of_the_files_of_model_optimizer(name, types):
    assert qdq_operators.quantized_types(onnx.load(FILES / f"{name}.onnx")) == types


def of_text(text, **stored):
    return graphs.parsed(f"(float[64, 64] a) => (float[64, 64] y) {{ {text} }}", opset=21, s=np.float32(1), **stored)


@pytest.mark.parametrize(
    ("model", "types"),
    [
        (typed_graphs.quantized(F16, I8), ("int8",)),
        (typed_graphs.quantized(F32, U8), ("uint8",)),
        (typed_graphs.quantized(F16, F8), ("fp8",)),
        (typed_graphs.weights_alone(F16, I4, F16, (4, 64), axis=0, block_size=16), ("int4",)),
        (typed_graphs.of_nvidia_domain(F8), ("fp8",)),
        (typed_graphs.two("MatMul", F32, F32), ()),
        (of_text("q = QuantizeLinear(a, s) y = DequantizeLinear(q, s)"), ("uint8",)),
        (of_text("v = DequantizeLinear(b, s) y = Add(a, v)", b=np.ones(64, np.int32)), ()),
        (
            of_text("z = Constant<value = int8 {0}>() q = QuantizeLinear(a, s, z) y = DequantizeLinear(q, s, z)"),
            ("int8",),
        ),
    ],
    ids=["int8", "uint8", "fp8", "int4", "NVIDIA's", "none", "ONNX's default", "an int32 bias", "a constant node"],
)
def test_the_types_of_one_graph(model, types):
    assert qdq_operators.quantized_types(model) == types
