"""The start times of requests, and the points of a load test."""

import numpy as np
import pytest

from engine.client import generator
from engine.errors import UsageError


def test_arrivals_are_even_or_those_of_independent_callers():
    assert generator.planned(4, 1, arrivals="constant", seed=0) == [0, 0.25, 0.5, 0.75]
    drawn = generator.planned(50, 100, arrivals="poisson", seed=1)
    assert drawn == sorted(drawn) == generator.planned(50, 100, arrivals="poisson", seed=1)
    assert drawn != generator.planned(50, 100, arrivals="poisson", seed=2)
    gaps = np.diff(drawn)
    assert len(drawn) == pytest.approx(5000, rel=0.06)
    assert np.std(gaps) == pytest.approx(np.mean(gaps), rel=0.06)  # as the exponential distribution has it


def test_a_sweep_is_listed_doubled_or_stepped():
    assert generator.concurrencies("1,8, 32") == [1, 8, 32]
    assert generator.concurrencies("1:32:2x") == [1, 2, 4, 8, 16, 32]
    assert generator.concurrencies("4:12:4,20") == [4, 8, 12, 20]
    assert generator.rates("2.5,10:20:5") == [2.5, 10, 15, 20]
    for broken in ("", "1,", "0", "8:1:2x", "1:8:1x", "1:8", "1:9999:1", "1.5"):
        with pytest.raises(UsageError):
            generator.concurrencies(broken)
    with pytest.raises(UsageError, match="a load of 0 sends no requests"):
        generator.concurrencies("1,0")
