"""Sensitivity: the group that does the most harm for its work goes first, and only as far as it must."""

import numpy as np
import pytest

from engine.kit.quantization.qdq import sensitivity
from engine.kit.quantization.qdq.matmuls import Group

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
    return sensitivity.select(GROUPS, SHARES, lambda chosen: FakeSession(chosen, harm), SAMPLES, goal=goal, least=least)


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
