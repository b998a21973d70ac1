"""Half precision in a graph: where the casts go, what keeps its name, and what is never touched."""

import graphs
import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
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


def scalar(name, value):
    return numpy_helper.from_array(np.array(value, np.float32), name)


def test_inputs_and_outputs_keep_their_names_and_types(tmp_path):
    model = graphs.layers()
    before = [value.SerializeToString() for value in (*model.graph.input, *model.graph.output)]
    converted(model, tmp_path)
    assert [value.SerializeToString() for value in (*model.graph.input, *model.graph.output)] == before
    assert operators(model) == ["Cast", "MatMul", "Add", "Relu", "Gemm", "Cast"]
    assert {tensor.data_type for tensor in model.graph.initializer} == {TensorProto.FLOAT16}


def test_one_cast_serves_all_that_read_a_tensor(tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "a"),
        helper.make_node("Neg", ["a"], ["b"], "b"),
        helper.make_node("Abs", ["a"], ["c"], "c"),
        helper.make_node("Add", ["b", "c"], ["y"], "y"),
    ]
    model = graphs.graph(nodes, [("x", FLOAT, ["n"])], [("y", FLOAT, ["n"])], opset=20)
    assert converted(model, tmp_path, {"b", "c"}) == 3  # one down, two up
    assert operators(model).count("Cast") == 3


def test_a_weight_that_both_precisions_read_is_stored_in_both(tmp_path):
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["a"], "a"),
        helper.make_node("Mul", ["a", "w"], ["y"], "y"),
    ]
    weights = [graphs.weight("w", 4)]
    model = graphs.graph(nodes, [("x", FLOAT, ["n", 4])], [("y", FLOAT, ["n", 4])], weights, opset=20)
    converted(model, tmp_path, {"a"})
    assert {tensor.name: tensor.data_type for tensor in model.graph.initializer} == {
        "w": TensorProto.FLOAT,
        "w_fp16": TensorProto.FLOAT16,
    }


def test_what_a_body_reads_from_outside_stays_fp32(tmp_path):
    inner = helper.make_graph(
        [helper.make_node("Neg", ["a"], ["inner"])], "then", [], [helper.make_tensor_value_info("inner", FLOAT, None)]
    )
    other = helper.make_graph(
        [helper.make_node("Abs", ["a"], ["outer"])], "else", [], [helper.make_tensor_value_info("outer", FLOAT, None)]
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "a"),
        helper.make_node("If", ["flag"], ["b"], "if", then_branch=inner, else_branch=other),
        helper.make_node("Neg", ["b"], ["y"], "y"),
    ]
    inputs = [("x", FLOAT, ["n"]), ("flag", TensorProto.BOOL, [])]
    model = graphs.graph(nodes, inputs, [("y", FLOAT, ["n"])], opset=20)
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
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        helper.make_node("Cast", ["ids"], ["count"], to=FLOAT),
        helper.make_node("Mul", ["count", "two"], ["double"]),
        helper.make_node("Add", ["zeros", "double"], ["y"]),
    ]
    inputs = [("x", FLOAT, ["n"]), ("ids", graphs.INT64, ["n"])]
    model = graphs.graph(nodes, inputs, [("y", FLOAT, ["n"])], opset=20)
    converted(model, tmp_path)
    graphs.write(tmp_path, model)
    got = ort.run(ort.session(tmp_path), {"x": np.zeros(2, np.float32), "ids": np.array([3, 4])})
    assert got["y"].tolist() == [6, 8]


def test_weights_that_old_models_list_as_inputs_are_converted_all_the_same(tmp_path):
    inputs = [("x", FLOAT, ["n", 4]), ("w", FLOAT, [4])]
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    model = graphs.graph(nodes, inputs, [("y", FLOAT, ["n", 4])], [graphs.weight("w", 4)], ir=3, opset=9)
    converted(model, tmp_path)
    assert [value.name for value in model.graph.input] == ["x"]
    assert [tensor.data_type for tensor in model.graph.initializer] == [TensorProto.FLOAT16]


def test_the_same_conversion_gives_the_same_bytes(tmp_path):
    contents = []
    for name in ("one", "two"):
        model = graphs.layers()
        converted(model, tmp_path)
        onnx_files.save(model, tmp_path / name)
        contents.append((tmp_path / name / "model.onnx").read_bytes())
    assert contents[0] == contents[1]


def test_minus_infinity_of_masks_is_brought_within_fp16_and_limits_are_left_alone():
    least = float(np.finfo(np.float32).min)
    nodes = [
        helper.make_node("Mul", ["x", "far"], ["bias"]),
        helper.make_node("Clip", ["bias", "low"], ["clipped"]),
        helper.make_node("Unsqueeze", ["there", "axis"], ["column"]),
        helper.make_node("Where", ["flag", "column", "clipped"], ["y"]),
    ]
    axis = numpy_helper.from_array(np.array([0], np.int64), "axis")
    weights = [scalar("far", least), scalar("low", least), scalar("there", -np.inf), axis]
    inputs = [("x", FLOAT, ["n"]), ("flag", TensorProto.BOOL, ["n"])]
    model = graphs.graph(nodes, inputs, [("y", FLOAT, ["n"])], weights, opset=20)
    assert graphs.changed(model, overflow.saturate) == ["far", "there"]
    values = {t.name: float(numpy_helper.to_array(t).ravel()[0]) for t in model.graph.initializer}
    assert (values["far"], values["there"], values["low"]) == (-3e4, -3e4, least)
