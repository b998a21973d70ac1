"""The choice by regret: tables of measured ratios, with their noise, and the layout that is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kit.choice import regret
from engine.kit.choice.candidates import Latency
from engine.kit.choice.layouts import TimedLayout

NOISE = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005, 1.0, 1.0)
"""The share of the usual time that each round took."""


def timed(*ratios, noise=NOISE):
    """Return two layouts, of which `fused` is as many times as fast as `ensemble` as `ratios` says for each case."""
    fused = tuple(Latency({"case": n}, tuple(10 / ratio * part for part in noise)) for n, ratio in enumerate(ratios))
    ensemble = tuple(Latency(each.shape, (10.0,) * len(noise)) for each in fused)
    return {"ensemble": TimedLayout(ensemble), "fused": TimedLayout(fused)}


@pytest.mark.parametrize(
    ("ratios", "kept"),
    [
        ((1.0, 1.0, 1.0), "ensemble"),  # no difference: the default
        ((1.003, 0.997, 1.0), "ensemble"),  # within the noise
        ((1.0, 1.0, 1.3), "fused"),  # faster in one case, slower in none
        ((0.9, 1.0, 1.0), "ensemble"),
        ((0.9, 1.3, 1.0), "fused"),  # the ensemble would lose 1.3 x, fused loses 1.11 x
        ((1.05, 1.05, 1.05, 0.8), "ensemble"),  # faster on average, and much slower in one case
        ((1.25, 0.8), "ensemble"),  # equal regrets: the default
        ((), "ensemble"),
    ],
)
def test_the_least_bad_worst_case_is_kept(ratios, kept):
    assert regret.least(timed(*ratios), "ensemble") == kept


def test_a_lead_within_the_noise_does_not_count():
    wide = (0.7, 1.3, 0.8, 1.2, 0.9, 1.1, 0.75, 1.25)
    assert regret.least(timed(1.1, 1.1, noise=wide), "ensemble") == "ensemble"
    assert regret.least(timed(1.1, 1.1), "ensemble") == "fused"


def test_one_candidate_alone_is_kept():
    assert regret.least({"ensemble": TimedLayout()}, "ensemble") == "ensemble"


def test_the_leads_of_each_case_have_their_intervals():
    both = timed(1.25, 0.5)
    faster, slower = regret.leads(both["fused"], both["ensemble"])
    assert faster.ratio == pytest.approx(1.25, rel=0.01)
    assert faster.is_sure
    assert slower.ratio == pytest.approx(0.5, rel=0.01)
    assert slower.is_surely_slower
    assert faster.interval[0] <= faster.ratio <= faster.interval[1]


RATIOS = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=5)
ROUNDS = st.lists(st.floats(0.8, 1.25), min_size=3, max_size=8)


@given(st.lists(st.floats(1.1, 2.0), min_size=1, max_size=5), st.booleans())
def test_a_layout_that_is_faster_in_every_case_is_kept(ratios, is_fused):
    both = timed(*(ratio if is_fused else 1 / ratio for ratio in ratios))
    for default in both:
        assert regret.least(both, default) == ("fused" if is_fused else "ensemble")


@given(RATIOS, ROUNDS, st.sampled_from(["ensemble", "fused"]))
def test_the_worst_case_of_the_kept_one_is_never_worse_than_that_of_the_other(ratios, noise, default):
    both = timed(*ratios, noise=noise)
    kept = regret.least(both, default)
    other = next(name for name in both if name != kept)
    kept_regret = regret.of(both[kept], {other: both[other]})
    other_regret = regret.of(both[other], {kept: both[kept]})
    assert kept_regret <= other_regret
    assert kept == default or kept_regret < other_regret


@given(RATIOS, ROUNDS)
def test_where_one_is_never_slower_beyond_the_noise_the_kept_one_never_is(ratios, noise):
    both = timed(*ratios, noise=noise)
    regrets = {name: regret.of(both[name], {k: v for k, v in both.items() if k != name}) for name in both}
    if min(regrets.values()) == 1:
        assert regrets[regret.least(both, "ensemble")] == 1
