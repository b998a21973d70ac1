"""Fidelity: the cosine and the largest error of a variant against the original's outputs."""

import graphs
import numpy as np
import pytest

from engine.kit.inputs.cases import Case
from engine.kit.quantization import fidelity
from engine.kit.quantization.qdq.matmuls import Group
from engine.runtimes.onnxruntime import session as ort


def scaled(tmp_path, factors):
    """Open a model that multiplies x [1, 2] by two factors."""
    text = "(float[1, 2] x) => (float[1, 2] y) { y = Mul(x, factors) }"
    return ort.unoptimized_graph(graphs.parsed(text, factors=np.array(factors, np.float32)), tmp_path)


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


GROUPS = tuple(Group(name, (f"{name}_out",), (f"{name}_weight",)) for name in "abcd")
SHARES = dict(zip(GROUPS, (0.1, 0.1, 0.2, 0.6), strict=True))
SAMPLES = [{"x": np.eye(4, dtype=np.float32)[None, number]} for number in range(4)]


class FakeSession:
    """Answers with its input, turned away by the harm of the groups that are quantized."""

    def __init__(self, chosen, harm):
        self.off = sum(harm[group.source] for group in chosen)

    def get_inputs(self):
        return [type("Value", (), {"name": "x", "type": "tensor(float)"})]

    def get_outputs(self):
        return [type("Value", (), {"name": "y"})]

    def run(self, names, feed, *_):
        return [feed["x"] + self.off * np.roll(feed["x"], 1, axis=1)]


def select(goal=0.995, least=0.7, **harm):
    return fidelity.selected(GROUPS, SHARES, lambda chosen: FakeSession(chosen, harm), SAMPLES, goal=goal, least=least)


def sources(selection):
    return "".join(group.source for group in selection.chosen)


def test_everything_is_quantized_where_nothing_suffers():
    selection = select(a=0.01, b=0.01, c=0.01, d=0.01)
    assert sources(selection) == "abcd"
    assert not selection.left


def test_the_sensitive_group_is_left_out_and_its_own_error_told():
    selection = select(a=0.01, b=0.5, c=0.01, d=0.01)
    assert sources(selection) == "acd"
    assert list(selection.left.values()) == [pytest.approx(1 - 1 / 1.25**0.5, abs=1e-5)]
    assert selection.cosines.worst >= 0.995


def test_the_share_never_falls_below_the_least():
    selection = select(a=0.01, b=0.01, c=0.01, d=0.5)
    assert "d" in sources(selection)
    assert sum(SHARES[group] for group in selection.chosen) >= 0.7
    assert selection.cosines.worst < 0.995


def test_where_the_goal_cannot_be_had_the_best_that_was_seen_is_taken():
    selection = select(a=0.2, b=0.2, c=0.01, d=0.5)
    assert selection.cosines.worst == max(cosines.worst for _, cosines in selection.path)
