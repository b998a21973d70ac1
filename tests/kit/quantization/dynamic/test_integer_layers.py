"""Integer layers: products of integers are close to the products of floats, and no row depends on another row."""

import graphs
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from engine.kit.onnx import ir_models
from engine.kit.quantization.dynamic import integer_layers
from engine.kit.quantization.dynamic.integer_layers import Rounding
from engine.runtimes.onnxruntime import session as ort

WIDE, OUT = 64, 16


def layer(tmp_path, *, opset=23, bias=True, swapped=False):
    """x [rows, 64] -> MatMul, Add -> y [rows, 16]."""
    addition = f"y = Add({'b, p' if swapped else 'p, b'})"
    nodes = f"[layer] p = MatMul(x, w) {addition}" if bias else "[layer] y = MatMul(x, w)"
    weights = {"w": (WIDE, OUT), **({"b": graphs.weight("b", OUT, seed=1)} if bias else {})}
    text = f"(float[rows, {WIDE}] x) => (float[rows, {OUT}] y) {{ {nodes} }}"
    return graphs.write(tmp_path / "before", graphs.parsed(text, opset=opset, **weights))


def in_integers(folder, rounding, *, reduce_range=False):
    model = ir_models.load(folder)
    integer_layers.quantize(model, [rounding], reduce_range=reduce_range)
    ir_models.save(model, folder.parent / "after")
    return folder.parent / "after"


def answer(folder, x):
    return ort.run(ort.session(folder, threads=1, level="disabled"), {"x": x})["y"]


def rows(*sizes):
    normal = np.random.default_rng(5).standard_normal((len(sizes), WIDE)).astype(np.float32)
    return normal * np.array(sizes, np.float32)[:, None]


def lost(folder, after, x):
    """The error of each row as a share of the row's length."""
    expected, got = answer(folder, x), answer(after, x)
    return np.linalg.norm(got - expected, axis=1) / np.maximum(np.linalg.norm(expected, axis=1), 1e-9)


@pytest.mark.parametrize("opset", [11, 17, 18, 20, 23])
def test_each_row_has_the_precision_that_it_has_alone(tmp_path, opset):
    folder = layer(tmp_path, opset=opset, bias=False)
    after = in_integers(folder, Rounding(("layer",)), reduce_range=True)  # without VNNI, sums saturate at 16 bits
    x = rows(1e3, 1, 1e-3, 0)
    assert lost(folder, after, x).max() < 0.02
    together = answer(after, x)
    assert np.array_equal(together, np.concatenate([answer(after, row[None]) for row in x]))
    assert not together[3].any()  # a row of zeros stays one


@pytest.mark.parametrize("least", [0.0, -0.1701])
def test_values_with_a_bound_below_use_the_whole_range_of_eight_bits(tmp_path, least):
    folder = layer(tmp_path, bias=False)
    x = np.maximum(rows(*[5] * 20), np.float32(least))
    plain, bounded = (
        lost(folder, in_integers(folder, Rounding(("layer",), least=bound)), x).mean() for bound in (None, least)
    )
    assert bounded < plain * 0.9  # the weight is rounded, too


@pytest.mark.parametrize("swapped", [False, True])
def test_a_fixed_range_takes_the_bias_into_the_product(tmp_path, swapped):
    folder = layer(tmp_path, swapped=swapped)
    after = in_integers(folder, Rounding(("layer",), largest=5.0))
    operators = [node.op_type for node in onnx.load(after / "model.onnx").graph.node]
    assert operators == ["QuantizeLinear", "MatMulIntegerToFloat"]
    x = rows(1, 0.5)
    assert lost(folder, after, x).max() < 0.03
    assert np.array_equal(answer(after, x)[:1], answer(after, x[:1]))


def test_a_value_beyond_the_fixed_range_is_clipped_and_harms_no_other_row(tmp_path):
    folder = layer(tmp_path)
    after = in_integers(folder, Rounding(("layer",), largest=5.0))
    errors = lost(folder, after, rows(1, 1e4))
    assert errors[0] < 0.02
    assert errors[1] > 0.5


@pytest.mark.parametrize(("reduce_range", "most"), [(False, 127), (True, 63)])
def test_weights_have_seven_bits_where_the_cpu_would_saturate(tmp_path, reduce_range, most):
    after = in_integers(layer(tmp_path), Rounding(("layer",)), reduce_range=reduce_range)
    stored = {each.name: numpy_helper.to_array(each) for each in onnx.load(after / "model.onnx").graph.initializer}
    assert (np.abs(stored["w_integers"]).max(axis=0) == most).all()
    assert "w" not in stored


@pytest.mark.parametrize(("reduce_range", "most"), [(False, 127), (True, 63)])
def test_each_column_uses_its_whole_range(reduce_range, most):
    weight = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32) * np.logspace(-3, 3, 6, dtype="f")
    integers, scales = integer_layers.by_column(weight, reduce_range=reduce_range)
    assert (integers.dtype, scales.dtype) == (np.int8, np.float32)
    assert (np.abs(integers).max(axis=0) == most).all()
    assert (np.abs(integers * scales - weight) <= scales * 0.5001).all()


def test_a_column_of_zeros_stays_one():
    integers, scales = integer_layers.by_column(np.zeros((4, 2), np.float32), reduce_range=False)
    assert not integers.any()
    assert np.isfinite(scales).all()


def test_chunks_of_rows_give_the_same_numbers(monkeypatch):
    weight = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    whole = integer_layers.by_column(weight, reduce_range=False)
    monkeypatch.setattr(integer_layers, "_CHUNK", 21)
    for one, other in zip(whole, integer_layers.by_column(weight, reduce_range=False), strict=True):
        assert np.array_equal(one, other)
