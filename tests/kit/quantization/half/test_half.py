"""Half precision in a graph: where the casts go, what keeps its name, and what is never touched."""

import graphs
import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper

from engine.kit.onnx import ir_models
from engine.kit.onnx.surgery import name_nodes
from engine.kit.quantization.half import half, overflow, ranges, signatures
from engine.runtimes.onnxruntime import session as ort

FLOAT = graphs.FLOAT


def converted(model, tmp_path, low=None, kind="fp16"):
    graphs.changed(model, name_nodes)
    names = {node.name for node in model.graph.node}
    types = ranges.tensor_types(ir_models.of(model), tmp_path)
    casts = graphs.changed(model, half.convert, names if low is None else low, types, kind)
    onnx.checker.check_model(model, full_check=True)
    return casts


def operators(model):
    return [node.op_type for node in model.graph.node]


def test_inputs_and_outputs_keep_their_names_and_types(tmp_path):
    model = graphs.layers()
    before = [value.SerializeToString() for value in (*model.graph.input, *model.graph.output)]
    converted(model, tmp_path)
    assert [value.SerializeToString() for value in (*model.graph.input, *model.graph.output)] == before
    assert operators(model) == ["Cast", "MatMul", "Add", "Relu", "Gemm", "Cast"]
    assert {tensor.data_type for tensor in model.graph.initializer} == {TensorProto.FLOAT16}


def test_one_cast_serves_all_that_read_a_tensor(tmp_path):
    text = "(float[n] x) => (float[n] y) { [a] a = Relu(x) [b] b = Neg(a) [c] c = Abs(a) [y] y = Add(b, c) }"
    model = graphs.parsed(text, opset=20)
    assert converted(model, tmp_path, {"b", "c"}) == 3  # one down, two up
    assert operators(model).count("Cast") == 3


def test_a_weight_that_both_precisions_read_is_stored_in_both(tmp_path):
    text = "(float[n, 4] x) => (float[n, 4] y) { [a] a = Mul(x, w) [y] y = Mul(a, w) }"
    model = graphs.parsed(text, opset=20, w=(4,))
    converted(model, tmp_path, {"a"})
    assert {tensor.name: tensor.data_type for tensor in model.graph.initializer} == {
        "w": TensorProto.FLOAT,
        "w_fp16": TensorProto.FLOAT16,
    }


def test_what_a_body_reads_from_outside_stays_fp32(tmp_path):
    model = graphs.parsed(
        "(float[n] x, bool flag) => (float[n] y) { [a] a = Relu(x) [if] b = If (flag) <"
        "then_branch = then () => (float[] inner) { inner = Neg(a) }, "
        "else_branch = else () => (float[] outer) { outer = Abs(a) }> [y] y = Neg(b) }",
        opset=20,
    )
    converted(model, tmp_path)
    graphs.write(tmp_path, model)
    session = ort.session(tmp_path)
    for flag, expected in ((True, 1), (False, -1)):
        got = ort.run(session, {"x": np.ones(1, np.float32), "flag": np.array(flag)})
        assert got["y"].tolist() == [expected]


def test_operators_without_a_half_form_and_inputs_that_must_be_fp32_are_known():
    opsets = {"": 20, "com.microsoft": 1}

    def slots(operator, domain="", kind="fp16", **attributes):
        return signatures.of(
            ir.from_proto(helper.make_node(operator, ["a"], ["b"], domain=domain, **attributes)), opsets, kind
        )

    assert slots("MatMul").takes(1)
    assert not slots("Range").gives(0)
    resize = slots("Resize")
    assert (resize.takes(0), resize.takes(2), resize.gives(0)) == (True, False, True)  # scales are float32 always
    assert slots("Attention", "com.microsoft").takes(2)
    assert not slots("Attention", "com.microsoft").takes(3)  # the mask is int32
    assert slots("EmbedLayerNormalization", "com.microsoft").gives(0)
    assert not slots("EmbedLayerNormalization", "com.microsoft", "bf16").gives(0)
    assert slots("Imagined", "elsewhere.org") == signatures.NONE
    assert slots("RandomNormal", shape=[1]) == signatures.NONE
    assert slots("EyeLike", dtype=1) == signatures.NONE


def test_types_of_outputs_said_by_attributes_are_changed_with_them(tmp_path):
    model = graphs.parsed(
        "(float[n] x, int64[n] ids) => (float[n] y) { shape = Shape(x) zeros = ConstantOfShape(shape) "
        "two = Constant<value_float = 2.0>() count = Cast<to = 1>(ids) double = Mul(count, two) "
        "y = Add(zeros, double) }",
        opset=20,
    )
    converted(model, tmp_path)
    graphs.write(tmp_path, model)
    got = ort.run(ort.session(tmp_path), {"x": np.zeros(2, np.float32), "ids": np.array([3, 4])})
    assert got["y"].tolist() == [6, 8]


def test_weights_that_old_models_list_as_inputs_are_converted_all_the_same(tmp_path):
    model = graphs.parsed("(float[n, 4] x, float[4] w) => (float[n, 4] y) { y = Mul(x, w) }", ir=3, opset=9, w=(4,))
    converted(model, tmp_path)
    assert [value.name for value in model.graph.input] == ["x"]
    assert [tensor.data_type for tensor in model.graph.initializer] == [TensorProto.FLOAT16]


def test_minus_infinity_of_masks_is_brought_within_fp16_and_limits_are_left_alone():
    least = np.finfo(np.float32).min
    model = graphs.parsed(
        "(float[n] x, bool[n] flag) => (float[n] y) { bias = Mul(x, far) clipped = Clip(bias, low) "
        "column = Unsqueeze(there, axis) y = Where(flag, column, clipped) }",
        opset=20, far=least, low=least, there=np.float32(-np.inf), axis=np.array([0]),
    )  # fmt: skip
    assert graphs.changed(model, overflow.saturate) == ["far", "there"]
    values = {t.name: float(numpy_helper.to_array(t).ravel()[0]) for t in model.graph.initializer}
    assert (values["far"], values["there"], values["low"]) == (-3e4, -3e4, least)
