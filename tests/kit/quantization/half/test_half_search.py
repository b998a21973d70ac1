"""What goes to half precision, what stays and why: decided by running samples."""

import subprocess
import sys

import graphs
import numpy as np
import pytest
from graphs import FLOAT
from onnx import TensorProto, helper, numpy_helper

from engine.kit.inputs.cases import Case
from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization.half import half_choice, half_search, ranges
from engine.kit.quantization.report import NodeCounts


def scalar(name, value):
    return numpy_helper.from_array(np.array(value, np.float32), name)


def samples(*, factor=1.0, features=8, count=4):
    generator = np.random.default_rng(3)
    drawn = generator.standard_normal((count, 2, features)).astype(np.float32) * np.float32(factor)
    return [Case(f"line {n}", "", "sample", {"x": row}, {}) for n, row in enumerate(drawn)]


def vectors(nodes, weights=(), features=8, opset=20):
    shape = ["batch", features]
    return graphs.graph(nodes, [("x", FLOAT, shape)], [("y", FLOAT, None)], list(weights), opset=opset)


def lowered(model, cases, kind, tmp_path):
    """Return a model in half precision, and the report."""
    passes = Pipeline(ir_models.of(onnx_files.copied(model)))
    report = half_search.lowered(passes, cases, kind, tmp_path)
    return ir_models.proto(passes.model), report


def kept(report, word):
    """The operators that a report keeps for the reason that has a word in it."""
    return {name: count for g in report.kept if word in g.reason for name, count in g.operators.items()}


def test_large_magnitudes_and_infinities_are_seen_and_empty_tensors_are_nothing(tmp_path):
    nodes = [
        helper.make_node("Mul", ["x", "thousand"], ["large"]),
        helper.make_node("Div", ["large", "zero"], ["broken"]),
        helper.make_node("Shape", ["broken"], ["sizes"]),
        helper.make_node("ConstantOfShape", ["none"], ["empty"]),
        helper.make_node("Identity", ["broken"], ["y"]),
    ]
    none = numpy_helper.from_array(np.array([0], np.int64), "none")
    model = vectors(nodes, [scalar("thousand", 1000), scalar("zero", 0), none])
    seen = ranges.measure(ir_models.of(model), [{"x": np.full((3, 8), 7, np.float32)}], tmp_path)
    assert (seen.largest["large"], seen.largest["broken"], seen.largest["empty"]) == (7000, np.inf, 0)
    assert seen.types["sizes"] == "tensor(int64)"
    assert seen.largest["thousand"] == 1000


_WATCHED = """
import resource
import sys
from pathlib import Path

import numpy as np

from engine.kit.onnx import ir_models
from engine.kit.quantization.half import ranges

model = ir_models.load(Path(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ranges.measure(model, [{"x": np.ones((1 << 20, 8), np.float32)}], Path(sys.argv[1]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_watching_a_deep_graph_holds_a_few_of_its_tensors_at_a_time(tmp_path):
    nodes = [helper.make_node("Neg", ["x" if n == 0 else f"t{n}"], [f"t{n + 1}"]) for n in range(60)]
    graphs.write(tmp_path, vectors([*nodes, helper.make_node("Neg", ["t60"], ["y"])]))
    command = [sys.executable, "-c", _WATCHED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    tensor = 32 << 10  # kB of each of the 60
    assert int(done.stdout) < 12 * tensor


def test_softmax_and_norms_stay_and_products_go(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"]),
        helper.make_node("LayerNormalization", ["a", "scale", "shift"], ["b"]),
        helper.make_node("MatMul", ["b", "second"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    weights = [graphs.weight("first", 8, 8), graphs.weight("second", 8, 8), graphs.weight("scale", 8),
               graphs.weight("shift", 8)]  # fmt: skip
    model, report = lowered(vectors(nodes, weights), samples(), "fp16", tmp_path)
    assert kept(report, "adds up") == {"LayerNormalization": 1, "Softmax": 1}
    assert report.share == 1
    assert report.cosine.worst > 0.9999
    assert [node.op_type for node in model.graph.node if node.op_type != "Cast"] == [n.op_type for n in nodes]


def test_a_norm_that_is_spelled_out_stays_as_a_whole():
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], "mean"),
        helper.make_node("Sub", ["x", "mean"], ["apart"], "apart"),
        helper.make_node("Pow", ["apart", "two"], ["square"], "square"),
        helper.make_node("ReduceMean", ["square"], ["spread"], "spread"),
        helper.make_node("Add", ["spread", "least"], ["some"], "some"),
        helper.make_node("Sqrt", ["some"], ["root"], "root"),
        helper.make_node("Div", ["apart", "root"], ["normal"], "normal"),
        helper.make_node("Mul", ["normal", "scale"], ["y"], "scaled"),
    ]
    model = vectors(nodes, [scalar("two", 2), scalar("least", 1e-12), graphs.weight("scale", 8)])
    assert half_choice.spelled_out(ir_models.of(model)) == {"apart", "square", "some", "root", "normal"}


def test_what_would_overflow_stays_and_the_report_says_how_large_it_is(tmp_path):
    nodes = [
        helper.make_node("Mul", ["x", "much"], ["large"], "swell"),
        helper.make_node("Mul", ["large", "little"], ["small"], "shrink"),
        helper.make_node("MatMul", ["small", "w"], ["y"], "product"),
    ]
    weights = [scalar("much", 3e4), scalar("little", 1e-4), graphs.weight("w", 8, 8)]
    _, report = lowered(vectors(nodes, weights), samples(factor=3), "fp16", tmp_path)
    (group,) = report.kept
    assert group.operators == {"Mul": 2}
    assert set(group.nodes) == {"swell", "shrink"}
    assert group.largest > 65504
    assert report.cosine.worst > 0.9995


def test_a_product_that_would_overflow_is_computed_on_smaller_numbers(tmp_path):
    weight = numpy_helper.from_array(np.full((8, 8), 3000, np.float32) * np.eye(8, dtype=np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["large"], "product"),
             helper.make_node("Mul", ["large", "little"], ["y"], "shrink")]  # fmt: skip
    model = vectors(nodes, [weight, scalar("little", 1e-4)])
    model, report = lowered(model, samples(factor=50), "fp16", tmp_path)
    assert list(report.scaled) == ["product"]
    assert report.share == 1
    assert kept(report, "range") == {"Mul": 2}  # what makes the product large again, and what reads it
    assert report.cosine.worst > 0.9999


def test_bf16_has_room_for_large_products(tmp_path):
    weight = numpy_helper.from_array(np.full((8, 8), 3000, np.float32), "w")
    model = vectors([helper.make_node("MatMul", ["x", "w"], ["y"], "product")], [weight])
    assert lowered(model, samples(factor=50), "bf16", tmp_path)[1].scaled == ()


def test_half_of_the_range_is_room_for_other_samples():
    assert half_choice.largest_limit("fp16") == 32752
    assert half_choice.largest_limit("bf16") > 1e38


def test_a_constant_that_would_vanish_stays(tmp_path):
    nodes = [
        helper.make_node("Abs", ["x"], ["size"]),
        helper.make_node("Add", ["size", "least"], ["some"], "guard"),
        helper.make_node("Div", ["x", "some"], ["y"]),
    ]
    _, report = lowered(vectors(nodes, [scalar("least", 1e-12)]), samples(), "fp16", tmp_path)
    assert kept(report, "so small") == {"Add": 1}


def test_large_values_return_to_fp32_until_the_answers_are_close_enough(tmp_path, capsys):
    """A stream of 20000 has steps of 16 in fp16: what is added to it and taken out again is lost."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("Add", ["a", "stream"], ["b"], "in"),
        helper.make_node("Sub", ["b", "stream"], ["c"], "out"),
        helper.make_node("MatMul", ["c", "w"], ["y"], "last"),
    ]
    weights = [scalar("stream", 20000), graphs.weight("w", 8, 8)]
    _, report = lowered(vectors(nodes, weights), samples(), "fp16", tmp_path)
    assert kept(report, "large values") == {"Add": 1, "Sub": 1}
    assert report.path[0].cosine < 0.9995 <= report.path[-1].cosine
    assert [step.limit for step in report.path] == [32750, 8188]
    assert report.share == 1
    assert capsys.readouterr().out.count("nodes in fp32: cosine") == 2


def test_where_the_goal_cannot_be_reached_the_best_try_is_taken_and_the_path_told(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "inverse"], ["b"]),
        helper.make_node("Sub", ["b", "x"], ["rest"]),  # nothing but rounding is left of it
        helper.make_node("Mul", ["rest", "large"], ["y"]),  # an output near zero would not be compared
    ]
    weight = np.eye(8, dtype=np.float32) * np.float32(1.1)
    weights = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.linalg.inv(weight), "inverse")]
    weights.append(scalar("large", 10000))
    _, report = lowered(vectors(nodes, weights), samples(), "fp16", tmp_path)
    assert report.cosine.worst < 0.9995
    assert len(report.path) > 1
    assert report.cosine.worst == pytest.approx(max(step.cosine for step in report.path), abs=1e-5)


def test_numbers_handed_on_between_fp32_nodes_are_not_rounded(tmp_path):
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], "turn"),
        helper.make_node("Softmax", ["b"], ["y"]),
    ]
    model, _ = lowered(vectors(nodes), samples(), "fp16", tmp_path)
    assert [node.op_type for node in model.graph.node] == ["Softmax", "Transpose", "Softmax"]


def test_roundings_are_told_from_the_steps_of_int8_around_them(tmp_path):
    """Behind Q/DQ pairs a rounding may cost a whole step: no reason to keep anything in fp32."""
    zero = numpy_helper.from_array(np.array(0, np.int8), "zero")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("QuantizeLinear", ["a", "step", "zero"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "step", "zero"], ["d"], "dequantize"),
        helper.make_node("MatMul", ["d", "w"], ["y"], "last"),
    ]
    weights = [scalar("step", 4), zero, graphs.weight("w", 8, 8)]  # a step as large as the numbers themselves
    model, report = lowered(vectors(nodes, weights), samples(), "fp16", tmp_path)
    assert len(report.path) == 1
    assert report.cosine.worst > 0.9999
    assert list(report.kept) == []
    assert [node.op_type for node in model.graph.node] == [
        "Cast", "MatMul", "QuantizeLinear", "DequantizeLinear", "MatMul", "Cast",
    ]  # fmt: skip


def test_the_bytes_do_not_depend_on_the_run(tmp_path):
    contents = []
    for name in ("one", "two"):
        model, _ = lowered(graphs.layers(8, 16), samples(), "fp16", tmp_path)
        onnx_files.save(model, tmp_path / name)
        contents.append((tmp_path / name / "model.onnx").read_bytes())
    assert contents[0] == contents[1]


def test_nodes_that_compute_shapes_or_reshape_do_not_count_as_computing():
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "index"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "axes"], ["first"]),
        helper.make_node("Concat", ["first", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT16),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Cast", ["c"], ["y"], to=FLOAT),
    ]
    numbers = {"index": 0, "axes": [0], "rest": [-1]}
    stored = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    model = graphs.graph(nodes, [("x", FLOAT, ["n", 4])], [("y", FLOAT, None)], stored, opset=20)
    assert half_search.counted(ir_models.of(model)) == NodeCounts(all=8, casts=2, computing=3)
