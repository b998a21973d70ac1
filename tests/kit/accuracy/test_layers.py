"""The tensors inside two models are compared by the real Polygraphy, and the layer that loses accuracy is named."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import graphs
import numpy as np
import onnx
import pytest
import typed_graphs
from onnx import numpy_helper

from engine.errors import StepError, UsageError
from engine.kit.accuracy import layers

FILES = Path(typed_graphs.__file__).parent / "modelopt"
INPUTS = [{"x": np.random.default_rng(seed).standard_normal((2, 16, 32)).astype(np.float32)} for seed in range(2)]


@pytest.fixture
def needs_polygraphy():
    pytest.importorskip("polygraphy", reason="the extra `polygraphy` is not installed")


def folder(tmp_path, name, change=lambda model: None):
    model = onnx.load(FILES / f"{name}.onnx")
    change(model)
    return graphs.write(tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}", model)


def spoil(model):
    """Negate a tenth of the weights of the second product, `down`."""
    [tensor] = [each for each in model.graph.initializer if each.name == "w1"]
    weights = numpy_helper.to_array(tensor).copy()
    weights[::10] *= -1
    tensor.CopyFrom(numpy_helper.from_array(weights, "w1"))


@pytest.mark.usefixtures("needs_polygraphy")
def test_a_spoiled_layer_is_the_one_that_loses_most(tmp_path):
    every = layers.compare(folder(tmp_path, "mlp"), folder(tmp_path, "mlp", spoil), INPUTS)
    assert [layer.tensor for layer in every] == ["h0", "h1", "h2", "h3", "h4", "y"]
    worst = max(every, key=lambda layer: layer.lost)
    assert (worst.tensor, worst.operator) == ("h3", "MatMul")
    assert worst.lost > 0.05
    assert all(layer.cosine == pytest.approx(1) and layer.lost == 0 for layer in every[:3])
    assert every[4].cosine < 0.99  # what follows inherits the error, and loses less of its own
    assert every[4].lost < worst.lost


@pytest.mark.usefixtures("needs_polygraphy")
def test_a_quantized_model_is_compared_tensor_by_tensor_whatever_stands_between(tmp_path):
    every = layers.compare(folder(tmp_path, "mlp"), folder(tmp_path, "int8"), INPUTS)
    assert [(layer.tensor, layer.dtype) for layer in every][:2] == [("h0", "float16"), ("h1", "float16")]
    products = {layer.tensor: layer.lost for layer in every if layer.operator == "MatMul"}
    assert all(0 < lost < 0.01 for lost in products.values())


@pytest.mark.usefixtures("needs_polygraphy")
def test_a_tensor_whose_name_has_got_the_half_precision_behind_it_is_the_same_tensor(tmp_path):
    def rename(model):
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [f"{name}_fp16" if name.startswith("h") else name for name in names]

    every = layers.compare(folder(tmp_path, "mlp"), folder(tmp_path, "mlp", rename), INPUTS[:1])
    assert len(every) == 6


@pytest.mark.usefixtures("needs_polygraphy")
def test_a_model_that_cannot_run_here_is_an_error_with_a_way_forward(tmp_path):
    model = typed_graphs.two("MatMul", typed_graphs.BF16, typed_graphs.BF16)
    place = graphs.write(tmp_path / "bf16", model)
    with pytest.raises(StepError, match="Polygraphy cannot run the model") as caught:
        layers.compare(place, place, [{"a": np.zeros((64, 64), np.float32), "b": np.zeros((64, 64), np.float32)}])
    assert "the machine with the GPU" in caught.value.hint


@pytest.mark.usefixtures("needs_polygraphy")
def test_a_model_of_several_graphs_is_refused(tmp_path):
    with pytest.raises(UsageError, match="several graphs"):
        layers.compare(tmp_path, tmp_path, [])


def test_without_polygraphy_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="Polygraphy is not installed") as caught:
        layers.refuse_missing()
    assert "[polygraphy]" in caught.value.hint


@pytest.mark.usefixtures("needs_polygraphy")
def test_python_without_docstrings_is_named_as_the_cause(monkeypatch):
    layers.refuse_missing()
    monkeypatch.setattr(layers.sys, "flags", SimpleNamespace(optimize=2))
    with pytest.raises(UsageError, match="docstrings"):
        layers.refuse_missing()


def test_two_tensors_are_as_far_apart_as_their_numbers():
    ones, none = np.ones((2, 2), np.float32), np.ones((0, 2), np.float32)
    assert layers._distance(ones, ones) == (pytest.approx(1), 0)
    assert layers._distance(ones, -ones) == (pytest.approx(-1), 2)
    assert layers._distance(ones, np.full_like(ones, np.inf)) == (0, np.inf)
    assert layers._distance(np.full_like(ones, -np.inf), ones) is layers._distance(none, none) is None
    assert layers._distance(ones, ones.astype(np.int64)) is layers._distance(ones, ones[0]) is None
