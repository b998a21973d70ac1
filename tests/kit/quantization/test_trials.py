import numpy as np
import pytest

from engine.kit.onnx.onnx_files import Input
from engine.kit.quantization import trials


def test_a_batch_becomes_rows():
    inputs = {"a": Input("a", "float32", ("batch", 2)), "b": Input("b", "float32", ("batch",))}
    apart = trials.rows_apart(inputs, [{"a": np.arange(6).reshape(3, 2), "b": np.arange(3), "more": np.zeros(1)}])
    assert [(row["a"].tolist(), row["b"].tolist()) for row in apart] == [
        ([[0, 1]], [0]), ([[2, 3]], [1]), ([[4, 5]], [2])
    ]  # fmt: skip


@pytest.mark.parametrize("shapes", [((2, 2), (2,)), (("a", 2), ("b",)), (("a", 2), ())])
def test_inputs_without_a_common_free_axis_stay_whole(shapes):
    inputs = {name: Input(name, "float32", shape) for name, shape in zip("ab", shapes, strict=True)}
    sample = {"a": np.zeros((2, 2)), "b": np.zeros(2)}
    assert len(trials.rows_apart(inputs, [sample])) == 1


def test_enough_samples_are_judged_by_others_than_calibrate():
    samples = [{"x": np.array([number])} for number in range(100)]
    calibrating, judging = trials.held_out(samples)
    numbers = [{int(sample["x"][0]) for sample in part} for part in (calibrating, judging)]
    assert not numbers[0] & numbers[1]
    assert (len(calibrating), len(judging)) == (75, 7)
    few = trials.held_out(samples[:4])
    assert few[0] == few[1] == samples[:4]
