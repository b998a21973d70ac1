"""What goes to half precision, what stays and why: decided by running samples."""

import subprocess
import sys

import graphs
import numpy as np
import pytest

from engine.kit.inputs.cases import Case
from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization.half import half_choice, half_search, ranges
from engine.kit.quantization.report import NodeCounts


def samples(*, factor=1.0, features=8, count=4):
    generator = np.random.default_rng(3)
    drawn = generator.standard_normal((count, 2, features)).astype(np.float32) * np.float32(factor)
    return [Case(f"line {n}", "", "sample", {"x": row}, {}) for n, row in enumerate(drawn)]


def vectors(text, *, opset=20, **weights):
    """Return a graph of nodes as text, which gives y for x [batch, 8]."""
    return graphs.parsed(f"(float[batch, 8] x) => (float[] y) {{ {text} }}", opset=opset, **weights)


def scalar(value):
    return np.array(value, np.float32)


def lowered(model, cases, kind, tmp_path):
    """Return a model in half precision, and the report."""
    passes = Pipeline(ir_models.of(onnx_files.copied(model)))
    report = half_search.lowered(passes, cases, kind, tmp_path)
    return ir_models.proto(passes.model), report


def kept(report, word):
    """The operators that a report keeps for the reason that has a word in it."""
    return {name: count for g in report.kept if word in g.reason for name, count in g.operators.items()}


def test_large_magnitudes_and_infinities_are_seen_and_empty_tensors_are_nothing(tmp_path):
    model = vectors(
        "large = Mul(x, thousand) broken = Div(large, zero) sizes = Shape(broken) "
        "empty = ConstantOfShape(none) y = Identity(broken)",
        thousand=scalar(1000), zero=scalar(0), none=np.array([0]),
    )  # fmt: skip
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
    nodes = [f"t{n + 1} = Neg({'x' if n == 0 else f't{n}'})" for n in range(60)]
    graphs.write(tmp_path, vectors(" ".join([*nodes, "y = Neg(t60)"])))
    command = [sys.executable, "-c", _WATCHED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    tensor = 32 << 10  # kB of each of the 60
    assert int(done.stdout) < 12 * tensor


def test_softmax_and_norms_stay_and_products_go(tmp_path):
    text = "a = MatMul(x, first) b = LayerNormalization(a, scale, shift) c = MatMul(b, second) y = Softmax(c)"
    model = vectors(text, first=(8, 8), second=(8, 8), scale=(8,), shift=(8,))
    before = [node.op_type for node in model.graph.node]
    model, report = lowered(model, samples(), "fp16", tmp_path)
    assert kept(report, "adds up") == {"LayerNormalization": 1, "Softmax": 1}
    assert report.share == 1
    assert report.cosine.worst > 0.9999
    assert [node.op_type for node in model.graph.node if node.op_type != "Cast"] == before


def test_a_norm_that_is_spelled_out_stays_as_a_whole():
    model = vectors(
        "[mean] mean = ReduceMean(x) [apart] apart = Sub(x, mean) [square] square = Pow(apart, two) "
        "[spread] spread = ReduceMean(square) [some] some = Add(spread, least) [root] root = Sqrt(some) "
        "[normal] normal = Div(apart, root) [scaled] y = Mul(normal, scale)",
        two=scalar(2), least=scalar(1e-12), scale=(8,),
    )  # fmt: skip
    assert half_choice.spelled_out(ir_models.of(model)) == {"apart", "square", "some", "root", "normal"}


def test_what_would_overflow_stays_and_the_report_says_how_large_it_is(tmp_path):
    text = "[swell] large = Mul(x, much) [shrink] small = Mul(large, little) [product] y = MatMul(small, w)"
    model = vectors(text, much=scalar(3e4), little=scalar(1e-4), w=(8, 8))
    _, report = lowered(model, samples(factor=3), "fp16", tmp_path)
    (group,) = report.kept
    assert group.operators == {"Mul": 2}
    assert set(group.nodes) == {"swell", "shrink"}
    assert group.largest > 65504
    assert report.cosine.worst > 0.9995


def test_a_product_that_would_overflow_is_computed_on_smaller_numbers(tmp_path):
    weight = np.full((8, 8), 3000, np.float32) * np.eye(8, dtype=np.float32)
    model = vectors("[product] large = MatMul(x, w) [shrink] y = Mul(large, little)", w=weight, little=scalar(1e-4))
    model, report = lowered(model, samples(factor=50), "fp16", tmp_path)
    assert list(report.scaled) == ["product"]
    assert report.share == 1
    assert kept(report, "range") == {"Mul": 2}  # what makes the product large again, and what reads it
    assert report.cosine.worst > 0.9999


def test_bf16_has_room_for_large_products_and_half_of_the_range_is_room_for_other_samples(tmp_path):
    model = vectors("[product] y = MatMul(x, w)", w=np.full((8, 8), 3000, np.float32))
    assert lowered(model, samples(factor=50), "bf16", tmp_path)[1].scaled == ()
    assert half_choice.largest_limit("fp16") == 32752
    assert half_choice.largest_limit("bf16") > 1e38


def test_a_constant_that_would_vanish_stays(tmp_path):
    model = vectors("size = Abs(x) [guard] some = Add(size, least) y = Div(x, some)", least=scalar(1e-12))
    _, report = lowered(model, samples(), "fp16", tmp_path)
    assert kept(report, "so small") == {"Add": 1}


def test_large_values_return_to_fp32_until_the_answers_are_close_enough(tmp_path, capsys):
    """A stream of 20000 has steps of 16 in fp16: what is added to it and taken out again is lost."""
    text = "[first] a = MatMul(x, w) [in] b = Add(a, stream) [out] c = Sub(b, stream) [last] y = MatMul(c, w)"
    _, report = lowered(vectors(text, stream=scalar(20000), w=(8, 8)), samples(), "fp16", tmp_path)
    assert kept(report, "large values") == {"Add": 1, "Sub": 1}
    assert report.path[0].cosine < 0.9995 <= report.path[-1].cosine
    assert [step.limit for step in report.path] == [32750, 8188]
    assert report.share == 1
    assert capsys.readouterr().out.count("nodes in fp32: cosine") == 2


def test_where_the_goal_cannot_be_reached_the_best_try_is_taken_and_the_path_told(tmp_path):
    """Nothing but rounding is left of `rest`; an output near zero would not be compared."""
    weight = np.eye(8, dtype=np.float32) * np.float32(1.1)
    text = "a = MatMul(x, w) b = MatMul(a, inverse) rest = Sub(b, x) y = Mul(rest, large)"
    model = vectors(text, w=weight, inverse=np.linalg.inv(weight), large=scalar(10000))
    _, report = lowered(model, samples(), "fp16", tmp_path)
    assert report.cosine.worst < 0.9995
    assert len(report.path) > 1
    assert report.cosine.worst == pytest.approx(max(step.cosine for step in report.path), abs=1e-5)


def test_numbers_handed_on_between_fp32_nodes_are_not_rounded(tmp_path):
    text = "a = Softmax(x) [turn] b = Transpose(a) y = Softmax(b)"
    model, _ = lowered(vectors(text), samples(), "fp16", tmp_path)
    assert [node.op_type for node in model.graph.node] == ["Softmax", "Transpose", "Softmax"]


def test_roundings_are_told_from_the_steps_of_int8_around_them(tmp_path):
    """Behind Q/DQ pairs a rounding may cost a whole step, here as large as the numbers: no reason to stay in fp32."""
    text = (
        "[first] a = MatMul(x, w) [quantize] q = QuantizeLinear(a, step, zero) "
        "[dequantize] d = DequantizeLinear(q, step, zero) [last] y = MatMul(d, w)"
    )
    model = vectors(text, step=scalar(4), zero=np.int8(0), w=(8, 8))
    model, report = lowered(model, samples(), "fp16", tmp_path)
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
    model = vectors(
        "shape = Shape(x) rows = Gather(shape, index) first = Unsqueeze(rows, axes) "
        "target = Concat<axis = 0>(first, rest) a = Reshape(x, target) b = Cast<to = 10>(a) c = Relu(b) "
        "y = Cast<to = 1>(c)",
        index=np.array(0), axes=np.array([0]), rest=np.array([-1]),
    )  # fmt: skip
    assert half_search.counted(ir_models.of(model)) == NodeCounts(all=8, casts=2, computing=3)
