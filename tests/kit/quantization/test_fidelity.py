"""Fidelity: the cosine and the largest error of a variant against the original's outputs."""

import graphs
import numpy as np
import pytest
from graphs import FLOAT
from onnx import helper, numpy_helper

from engine.kit.inputs.cases import Case
from engine.kit.quantization import fidelity
from engine.runtimes.onnxruntime import session as ort


def scaled(tmp_path, factors):
    """Open a model that multiplies x [1, 2] by two factors."""
    stored = [numpy_helper.from_array(np.array(factors, np.float32), "factors")]
    nodes = [helper.make_node("Mul", ["x", "factors"], ["y"])]
    model = graphs.graph(nodes, [("x", FLOAT, [1, 2])], [("y", FLOAT, [1, 2])], stored)
    return ort.unoptimized_graph(model, tmp_path)


def truth(tmp_path, *rows):
    cases = [Case(str(number), "", "sample", {"x": np.array([row], np.float32)}, {}) for number, row in enumerate(rows)]
    return fidelity.answered(scaled(tmp_path, [1, 1]), cases)


def test_a_model_is_as_near_to_itself_as_can_be(tmp_path):
    measured = fidelity.measure(truth(tmp_path, [1, 2], [3, 4]), scaled(tmp_path, [1, 1]))
    assert measured.cosine.worst == pytest.approx(1)
    assert measured.relative == 0


def test_the_worst_and_the_mean_cosine_and_the_largest_error_are_told(tmp_path):
    measured = fidelity.measure(truth(tmp_path, [1, 0], [0, 2], [1, 1]), scaled(tmp_path, [1, 0.5]))
    assert measured.cosine.worst == pytest.approx(0.9486833)
    assert measured.cosine.mean == pytest.approx((2 + 0.9486833) / 3)
    assert measured.relative == pytest.approx(0.5)
    assert measured.cosine.rounded().worst == 0.948683


def test_an_answer_that_is_not_finite_has_the_lowest_cosine(tmp_path):
    measured = fidelity.measure(truth(tmp_path, [1, 2]), scaled(tmp_path, [1, np.inf]))
    assert (measured.cosine.worst, measured.relative) == (-1, float("inf"))


def test_without_cases_nothing_is_off(tmp_path):
    measured = fidelity.measure([], scaled(tmp_path, [2, 1]))
    assert (measured.cosine.worst, measured.relative) == (1, 0)
