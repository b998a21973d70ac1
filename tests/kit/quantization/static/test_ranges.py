import convolutional
import numpy as np
import pytest

from engine.kit.onnx import ir_models
from engine.kit.quantization.static import ranges
from engine.kit.quantization.static.ranges import TensorValues


def test_the_extremes_and_some_values_of_a_tensor_are_observed(tmp_path):
    model = ir_models.load(convolutional.written(tmp_path / "net"))
    samples = convolutional.images(3)
    observed = ranges.observe(model, ["image", "dense_on"], samples, tmp_path)
    every = np.concatenate([sample["image"].ravel() for sample in samples])
    assert observed["image"].smallest == pytest.approx(every.min())
    assert observed["image"].largest == pytest.approx(every.max())
    assert np.isin(observed["image"].values, every).all()
    assert len(np.unique(observed["image"].values)) > 1000
    assert (observed["dense_on"].smallest, observed["dense_on"].largest) <= (0, 6)
    assert [value.name for value in model.graph.outputs] == ["scores", "features"]


def test_a_tensor_that_is_never_negative_has_the_zero_point_0():
    chosen = ranges.widest(TensorValues(0.0, 5.1, np.linspace(0, 5.1, 100)))
    assert (chosen.zero, chosen.scale) == (0, pytest.approx(0.02))


def test_zero_is_exact():
    chosen = ranges.widest(TensorValues(-1.0, 3.0, np.zeros(1)))
    assert chosen.zero == 64
    assert chosen.scale == pytest.approx(4 / 255)


def test_a_lone_large_value_is_clipped_where_the_others_gain():
    generator = np.random.default_rng(0)
    values = np.append(generator.uniform(0, 1, 1_000_000), 1.6)
    observed = TensorValues(0.0, 1.6, values)
    assert ranges.closest(observed).scale < ranges.widest(observed).scale
    even = TensorValues(-1.0, 1.0, generator.uniform(-1, 1, 100_000))
    assert ranges.closest(even) == ranges.widest(even)


def test_a_tensor_of_zeros_has_a_range():
    assert ranges.closest(TensorValues(0.0, 0.0, np.zeros(4))) == ranges.ByteRange(np.float32(1), np.uint8(0))
