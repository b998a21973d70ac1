"""Choices of outputs that hold nothing to choose from."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kit.accuracy import agreement
from engine.kit.accuracy.agreement import Choices


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_an_output_without_elements_chooses_nothing(shape, dtype):
    empty = np.zeros(shape, dtype)
    assert agreement.predicted(empty) is None
    assert agreement.compare("y", empty, empty, None) == Choices(0, 0)


def test_logits_choose_the_class_of_the_largest():
    assert agreement.predicted(np.array([[0.1, 0.7, 0.2]])) == 1
    assert agreement.compare("y", np.eye(3), np.eye(3)[[0, 2, 2]], None) == Choices(3, 1)


def test_each_pixel_of_a_mask_chooses_a_class():
    logits = np.zeros((2, 3, 4, 5), "float32")
    logits[:, 1] = 1
    built = logits.copy()
    built[0, 2, 0, :2] = 2
    assert agreement.compare("logits", logits, built, None) == Choices(40, 2)
    assert agreement.compare("features", logits, built, None) == Choices(0, 0)
