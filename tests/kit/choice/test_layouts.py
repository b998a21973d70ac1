"""The layout that a build chose: the file beside the model, and the lines about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import StepError
from engine.kit.bench.stats import Lead
from engine.kit.choice import layouts
from engine.kit.choice.candidates import Latency
from engine.kit.choice.layouts import LayoutReport, TimedLayout


def test_what_is_written_is_read(tmp_path):
    layouts.write(tmp_path, "fused", "buckets")
    assert layouts.read(tmp_path) == ("fused", "buckets")


@pytest.mark.parametrize("text", [None, "", "[]", "{}"])
def test_a_missing_or_broken_file_is_an_error(tmp_path, text):
    if text is not None:
        (tmp_path / "layout.json").write_text(text)
    with pytest.raises(StepError, match="nothing says which layout was chosen"):
        layouts.read(tmp_path)


def timed(*rows):
    """Return the times of a layout: for each case its shape and the milliseconds of an answer."""
    return TimedLayout(tuple(Latency(shape, (value, value * 1.01, value * 0.99)) for shape, value in rows))


SHORT, MIXED = {"batch": 1, "sequence": 16, "clients": 1}, {"lengths": 8, "clients": 8}


def test_where_the_cases_disagree_the_lines_say_by_how_much_in_which_case():
    layouts_of = {"ensemble": timed((SHORT, 10.0), (MIXED, 13.0)), "fused": timed((SHORT, 11.0), (MIXED, 10.0))}
    name, leads = layouts.chosen(layouts_of)
    assert name == "fused"
    assert {case: lead.ratio for case, lead in leads.items()} == {
        "batch 1 x sequence 16, 1 client": pytest.approx(0.91, abs=0.005),
        "texts of 8 lengths, 8 clients": pytest.approx(1.3, abs=0.005),
    }
    first, short, mixed, where = LayoutReport(layout=name, leads=leads, cpu="a CPU", threads=1).lines()
    assert first == "layout: fused, padding: none"
    assert short.startswith("batch 1 x sequence 16, 1 client: fused answers 0.91 x [")
    assert short.endswith("as fast as the other layout, slower beyond the noise")
    assert mixed.startswith("texts of 8 lengths, 8 clients: fused answers 1.30 x [")
    assert mixed.endswith("as fast as the other layout")
    assert where == "measured in turns on a CPU, 1 thread"


def test_the_leads_are_those_of_the_layout_that_is_kept():
    same = {"ensemble": timed((SHORT, 10.0)), "fused": timed((SHORT, 12.0))}
    name, leads = layouts.chosen(same)
    assert name == "ensemble"
    assert [lead.ratio for lead in leads.values()] == [pytest.approx(1.2)]


def test_the_lines_have_the_lead_of_padding():
    lead = Lead(1.5, (1.4, 1.6))
    lines = list(LayoutReport(layout="ensemble", padding="buckets", padding_lead=lead, cpu="a CPU", threads=1).lines())
    assert lines[0] == "layout: ensemble, padding: buckets"
    assert "1.50 x [1.40, 1.60] as fast as none" in lines[1]


NOISE = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005, 1.0, 1.0)
"""The share of the usual time that each round took."""


def in_cases(*ratios, noise=NOISE):
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
    assert layouts.least_regret(in_cases(*ratios), "ensemble") == kept


def test_a_lead_within_the_noise_does_not_count():
    wide = (0.7, 1.3, 0.8, 1.2, 0.9, 1.1, 0.75, 1.25)
    assert layouts.least_regret(in_cases(1.1, 1.1, noise=wide), "ensemble") == "ensemble"
    assert layouts.least_regret(in_cases(1.1, 1.1), "ensemble") == "fused"


def test_one_candidate_alone_is_kept():
    assert layouts.least_regret({"ensemble": TimedLayout()}, "ensemble") == "ensemble"


def test_the_leads_of_each_case_have_their_intervals():
    both = in_cases(1.25, 0.5)
    faster, slower = layouts.leads_by_case(both["fused"], both["ensemble"])
    assert faster.ratio == pytest.approx(1.25, rel=0.01)
    assert faster.is_sure
    assert slower.ratio == pytest.approx(0.5, rel=0.01)
    assert slower.is_surely_slower
    assert faster.interval[0] <= faster.ratio <= faster.interval[1]


RATIOS = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=5)
ROUNDS = st.lists(st.floats(0.8, 1.25), min_size=3, max_size=8)


@given(st.lists(st.floats(1.1, 2.0), min_size=1, max_size=5), st.booleans())
def test_a_layout_that_is_faster_in_every_case_is_kept(ratios, is_fused):
    both = in_cases(*(ratio if is_fused else 1 / ratio for ratio in ratios))
    for default in both:
        assert layouts.least_regret(both, default) == ("fused" if is_fused else "ensemble")


@given(RATIOS, ROUNDS, st.sampled_from(["ensemble", "fused"]))
def test_the_worst_case_of_the_kept_one_is_never_worse_than_that_of_the_other(ratios, noise, default):
    both = in_cases(*ratios, noise=noise)
    kept = layouts.least_regret(both, default)
    other = next(name for name in both if name != kept)
    kept_regret = layouts.regret(both[kept], {other: both[other]})
    other_regret = layouts.regret(both[other], {kept: both[kept]})
    assert kept_regret <= other_regret
    assert kept == default or kept_regret < other_regret


@given(RATIOS, ROUNDS)
def test_where_one_is_never_slower_beyond_the_noise_the_kept_one_never_is(ratios, noise):
    both = in_cases(*ratios, noise=noise)
    regrets = {name: layouts.regret(both[name], {k: v for k, v in both.items() if k != name}) for name in both}
    if min(regrets.values()) == 1:
        assert regrets[layouts.least_regret(both, "ensemble")] == 1
