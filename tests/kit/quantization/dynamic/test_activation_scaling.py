"""Activation scaling: smoothed models compute the same, and each input of a layer gets the rounding that suits it."""

import graphs
import numpy as np
import pytest
from graphs import INT64
from onnx import helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization.dynamic import activation_scaling, ort_quantizer
from engine.kit.quantization.report import ActivationScaling
from engine.runtimes.onnxruntime import session as ort
from engine.steps.quantize import Quantize

WORDS, WIDE = 200, 64


def normalized(*, shared=False, products=("y",)):
    """Tokens -> a table -> a normalization with two channels far larger than the rest -> MatMuls."""
    gain = np.ones(WIDE, np.float32)
    gain[[5, 40]] = 60
    names = {name: "w" if shared else f"w_{name}" for name in products}
    layers = " ".join(f"{name} = MatMul(b, {weight})" for name, weight in names.items())
    outputs = ", ".join(f"float[batch, sequence, 16] {name}" for name in products)
    nodes = f"a = Gather(table, input_ids) b = LayerNormalization(a, gain) {layers}"
    weights = {name: graphs.weight(name, WIDE, 16, seed=3) for name in dict.fromkeys(names.values())}
    text = f"(int64[batch, sequence] input_ids) => ({outputs}) {{ {nodes} }}"
    return graphs.parsed(text, table=(WORDS, WIDE), gain=gain, **weights)


def activated(*, opset=17):
    """Rows of any size -> Relu -> MatMul: x [rows, 64] -> y [rows, 16]."""
    text = f"(float[rows, {WIDE}] x) => (float[rows, 16] y) {{ a = Relu(x) y = MatMul(a, w) }}"
    return graphs.parsed(text, opset=opset, w=(WIDE, 16))


def texts():
    return {"input_ids": np.random.default_rng(9).integers(0, WORDS, (4, 20))}


def rows_of_all_sizes():
    sizes = np.array([[1e3], [1.0], [1e-3], [0.0]], np.float32)
    return {"x": np.random.default_rng(9).standard_normal((4, WIDE)).astype(np.float32) * sizes}


def scaled(tmp_path, model):
    """The report, and the model as it came and as it became, both in float32."""
    before = graphs.write(tmp_path / "before", model)
    passes = Pipeline(ir_models.load(before))
    report, roundings = passes.run(activation_scaling.apply, ort_quantizer.prepare(passes), tmp_path)
    ir_models.save(passes.model, tmp_path / "after")
    assert report.by_row == sum(each.largest is None for each in roundings)
    return report, before, tmp_path / "after"


def answers(directory, inputs):
    return ort.run(ort.session(directory, threads=1), inputs)


def alike(before, after, inputs):
    one, two = answers(before, inputs), answers(after, inputs)
    for name, array in one.items():
        np.testing.assert_allclose(two[name], array, rtol=1e-4, atol=1e-4 * np.abs(array).max())


def lost_in_int8(tmp_path, model, inputs, monkeypatch, *, scaling):
    """The relative error of each row of the int8 model."""
    folder = tmp_path / ("scaled" if scaling else "plain")
    fused = graphs.write(folder / "fused", model)
    with monkeypatch.context() as patched:
        if not scaling:
            patched.setattr(activation_scaling, "apply", lambda *_: (None, []))
        Quantize().run(folder / "quantized", fused=fused)
    expected, got = (answers(folder / name, inputs)["y"].reshape(-1, 16) for name in ("fused", "quantized"))
    assert np.isfinite(got).all()
    return np.linalg.norm(got - expected, axis=1) / np.maximum(np.linalg.norm(expected, axis=1), 1e-9)


def test_large_channels_behind_a_normalization_move_into_the_weights(tmp_path, monkeypatch):
    report, before, after = scaled(tmp_path, normalized())
    assert report == ActivationScaling(smoothed=1, by_row=0, fixed=1)
    alike(before, after, texts())
    plain, improved = (lost_in_int8(tmp_path, normalized(), texts(), monkeypatch, scaling=on) for on in (False, True))
    assert improved.mean() < plain.mean() / 2


def test_all_that_read_one_tensor_share_its_factors(tmp_path):
    report, before, after = scaled(tmp_path, normalized(products=("q", "k", "v")))
    assert report == ActivationScaling(smoothed=1, by_row=0, fixed=1)
    assert sum(node.op_type == "Mul" for node in onnx_files.load_graph(after).graph.node) == 1
    alike(before, after, texts())


def test_weights_that_several_share_stay_and_rows_are_scaled_instead(tmp_path):
    report, before, after = scaled(tmp_path, normalized(shared=True, products=("y", "z")))
    assert report == ActivationScaling(smoothed=0, by_row=1)
    weights = {tensor.name: tensor for tensor in onnx_files.load(after).graph.initializer}
    assert np.array_equal(
        numpy_helper.to_array(weights["w"]), numpy_helper.to_array(graphs.weight("w", WIDE, 16, seed=3))
    )
    alike(before, after, texts())


def test_a_tensor_that_is_even_already_is_left(tmp_path):
    model = normalized()
    gain = next(tensor for tensor in model.graph.initializer if tensor.name == "gain")
    gain.CopyFrom(numpy_helper.from_array(np.ones(WIDE, np.float32), "gain"))
    report, _, after = scaled(tmp_path, model)
    assert report == ActivationScaling(smoothed=0, by_row=0, fixed=1)
    assert [node.op_type for node in onnx_files.load_graph(after).graph.node] == [
        "Gather",
        "LayerNormalization",
        "MatMul",
    ]


@pytest.mark.parametrize("opset", [11, 17, 18, 20])
def test_each_row_behind_an_activation_gets_a_scale_of_its_own(tmp_path, monkeypatch, opset):
    report, before, after = scaled(tmp_path, activated(opset=opset))
    assert report == ActivationScaling(smoothed=0, by_row=1)
    alike(before, after, rows_of_all_sizes())
    model = activated(opset=opset)
    plain, improved = (
        lost_in_int8(tmp_path, model, rows_of_all_sizes(), monkeypatch, scaling=on) for on in (False, True)
    )
    assert plain.max() > 0.9  # small rows are rounded to nothing
    assert improved.max() < 0.02  # and a row of zeros stays one


def test_what_is_bounded_has_a_known_range_and_what_attention_gives_a_scale_per_row(tmp_path):
    model = graphs.parsed(
        "(float[8, 8] x) => (float[8, 8] y) { p = Softmax<axis = -1>(x) a = MatMul(p, x) "
        "b = Transpose<perm = [1, 0]>(a) c = MatMul(b, w) d = Tanh(c) y = MatMul(d, v) }",
        w=(8, 8), v=graphs.weight("v", 8, 8, seed=1),
    )  # fmt: skip
    passes = Pipeline(ir_models.load(graphs.write(tmp_path / "before", model)))
    fit = ort_quantizer.prepare(passes)
    _, roundings = passes.run(activation_scaling.apply, fit, tmp_path)
    assert [(each.largest, each.least) for each in roundings] == [(None, None), (1.0, None)]


def test_rows_of_very_different_sizes_behind_a_normalization_get_a_scale_each(tmp_path):
    model = normalized()
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    stored["gain"].CopyFrom(numpy_helper.from_array(np.ones(WIDE, np.float32), "gain"))
    table = numpy_helper.to_array(stored["table"]) * np.where(np.arange(WORDS) % 50, 1, 100).astype("f")[:, None]
    stored["table"].CopyFrom(numpy_helper.from_array(table, "table"))
    normalization = model.graph.node[1]
    normalization.attribute.append(helper.make_attribute("epsilon", 1e6))  # so large that rows keep their sizes
    report, _, _ = scaled(tmp_path, model)
    assert (report.by_row, report.fixed) == (1, 0)


def test_a_model_of_other_inputs_than_tokens_is_scaled_by_row(tmp_path):
    model = normalized()
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("input_ids", INT64, ["batch", 4, 4]))
    report, _, _ = scaled(tmp_path, model)
    assert report == ActivationScaling(smoothed=0, by_row=1)


def test_a_model_that_refuses_random_tokens_is_scaled_by_row(tmp_path, capsys):
    model = normalized()
    places = helper.make_node("Add", ["a", "places"], ["c"])  # of three tokens, no more and no less
    model.graph.node.insert(1, places)
    model.graph.node[2].input[0] = "c"
    model.graph.initializer.append(graphs.weight("places", 3, WIDE))
    report, before, after = scaled(tmp_path, model)
    assert report == ActivationScaling(smoothed=0, by_row=1)
    assert "the model could not run on random tokens" in capsys.readouterr().out
    alike(before, after, {"input_ids": np.array([[7, 8, 9]])})
