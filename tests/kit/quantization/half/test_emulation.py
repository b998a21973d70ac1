"""Half precision on the CPU: what a GPU would round and what would overflow there, does so here."""

import graphs
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.names import name_nodes
from engine.kit.quantization.half import emulation, half, ranges
from engine.runtimes.onnxruntime import session as ort

X = ("x", graphs.FLOAT, ["n"])
Y = ("y", graphs.FLOAT, ["n"])


def lowered(nodes, tmp_path, kind="fp16", weights=()):
    """The graph with all of its nodes in half precision."""
    model = graphs.graph(nodes, [X], [Y], list(weights), opset=20)
    graphs.changed(model, name_nodes)
    types = ranges.tensor_types(ir_models.of(model), tmp_path)
    graphs.changed(model, half.convert, {node.name for node in model.graph.node}, types, kind)
    onnx.checker.check_model(model, full_check=True)
    return model


def answer(model, tmp_path, x, *, emulated=True):
    if emulated:
        graphs.changed(model, emulation.emulate)
    onnx_files.save(model, tmp_path)
    session = ort.session(tmp_path, threads=1, level="disabled")
    return ort.run(session, {"x": np.array(x, np.float32)})["y"]


def test_numbers_are_rounded_and_overflow_as_fp16_does(tmp_path):
    model = lowered([helper.make_node("Identity", ["x"], ["y"])], tmp_path)
    assert answer(model, tmp_path, [70000, -70000, 1.0001, 1e-9]).tolist() == [np.inf, -np.inf, 1, 0]


def test_bf16_keeps_the_range_and_rounds_more(tmp_path):
    model = lowered([helper.make_node("Identity", ["x"], ["y"])], tmp_path, "bf16")
    assert answer(model, tmp_path, [1e38, 1.001, 257]).tolist() == [pytest.approx(1e38, rel=4e-3), 1, 256]


def test_what_overflows_between_two_nodes_stays_infinite(tmp_path):
    thousand = numpy_helper.from_array(np.array(1000, np.float32), "thousand")
    nodes = [helper.make_node("Mul", ["x", "thousand"], ["big"]), helper.make_node("Div", ["big", "thousand"], ["y"])]
    assert answer(lowered(nodes, tmp_path, weights=[thousand]), tmp_path, [1, 100]).tolist() == [1, np.inf]


def test_without_emulation_the_cpu_hides_that(tmp_path):
    """Why there is an emulation: ONNX Runtime computes in float32 and keeps what no GPU could."""
    thousand = numpy_helper.from_array(np.array(1000, np.float32), "thousand")
    nodes = [helper.make_node("Mul", ["x", "thousand"], ["big"]), helper.make_node("Div", ["big", "thousand"], ["y"])]
    plain = answer(lowered(nodes, tmp_path, weights=[thousand]), tmp_path, [1, 100], emulated=False)
    assert plain.tolist() == [1, 100]


def test_a_kernel_adds_up_in_float32_and_rounds_once(tmp_path):
    row = numpy_helper.from_array(np.full((4096, 1), 1 / 4096, np.float32), "row")
    nodes = [
        helper.make_node("Unsqueeze", ["x", "first"], ["wide"]),
        helper.make_node("MatMul", ["wide", "row"], ["made"]),
        helper.make_node("Squeeze", ["made", "first"], ["y"]),
    ]
    first = numpy_helper.from_array(np.array([0], np.int64), "first")
    model = lowered(nodes, tmp_path, weights=[row, first])
    assert answer(model, tmp_path, np.ones(4096)).tolist() == [1]  # one by one in fp16 the sum would stop short


def test_the_kinds_of_a_graph_are_told(tmp_path):
    node = helper.make_node("Identity", ["x"], ["y"])
    assert emulation.kinds(lowered([node], tmp_path)) == ["fp16"]
    assert emulation.kinds(lowered([helper.make_node("Identity", ["x"], ["y"])], tmp_path, "bf16")) == ["bf16"]
    assert emulation.kinds(graphs.layers()) == []


def test_quantized_pairs_run_with_the_halves_around_them(tmp_path):
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "scale")
    zero = numpy_helper.from_array(np.array(0, np.int8), "zero")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    model = lowered(nodes, tmp_path, weights=[scale, zero])
    stored = {tensor.data_type for tensor in model.graph.initializer}
    assert TensorProto.FLOAT16 in stored
    assert answer(model, tmp_path, [0.6, 2.2, 1000]).tolist() == [0.5, 2, 63.5]


def test_a_graph_in_half_precision_from_elsewhere_is_emulated_by_its_inferred_types(tmp_path):
    nodes = [
        helper.make_node("Cast", ["x"], ["low"], to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["low", "low"], ["square"]),
        helper.make_node("Sqrt", ["square"], ["root"]),
        helper.make_node("Cast", ["root"], ["y"], to=TensorProto.FLOAT),
    ]
    model = graphs.graph(nodes, [X], [Y], opset=20)
    assert answer(model, tmp_path, [3, 300]).tolist() == [3, np.inf]
