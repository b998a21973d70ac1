import numpy as np
import pytest

from engine.kit.accuracy import units

SHARES = np.linspace(0, 1, 10)
SIGNED = np.linspace(-1, 1, 10)


@pytest.mark.parametrize(
    ("columns", "groups"),
    [
        ([640 * SHARES, 480 * SHARES, SHARES], [(0, 1), (2,)]),
        ([SHARES, 640 * SHARES, np.round(80 * SHARES)], [(1,), (0,), (2,)]),
        ([SIGNED, 1000 * SIGNED], [(1,), (0,)]),
        ([1e6 * SHARES, 1e3 * SIGNED, SHARES], [(0,), (1,), (2,)]),
    ],
)
def test_different_quantities_are_apart(columns, groups):
    assert units.divide(columns) == groups


@pytest.mark.parametrize(
    "columns",
    [
        [SHARES, SHARES / 1000],
        [SIGNED, SIGNED * 10],
        [SIGNED, SHARES * 0],
        [1000 * SIGNED, SHARES * 0],
        [SIGNED / 1e4, SHARES / 1e4],
        [SIGNED, np.round(SHARES)],
        [np.array([]), np.array([])],
    ],
)
def test_equal_quantities_stay_together(columns):
    assert units.divide(columns) == [(0, 1)]
