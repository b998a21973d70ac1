"""The lead of a candidate is a ratio of rounds, and only a lead above the noise changes the choice."""

import math

import pytest

from engine.kit.accuracy.report import AccuracyReport, Worst
from engine.kit.choice.candidates import (
    CandidateModel,
    CandidatesReport,
    Latency,
    fastest,
    lead,
    medians,
    parameter,
    without_texts,
)

ACCURACY = AccuracyReport(
    cases=2, kinds={"sample": 2}, random=False, cosine=Worst(worst=0.98, mean=0.99, sample="line 1", text="a secret")
)
SLOW = (10.0, 10.2, 9.9, 10.1, 10.0, 10.1)


def candidate(*rounds):
    shapes = ({"batch": 1}, {"batch": 8})
    return CandidateModel(ACCURACY, tuple(Latency(shape, each) for shape, each in zip(shapes, rounds, strict=False)))


def faster(rounds, ratio):
    return tuple(each / ratio for each in rounds)


def test_the_lead_is_the_geometric_mean_over_the_shapes():
    default = candidate(SLOW, SLOW)
    measured = lead(candidate(faster(SLOW, 4), faster(SLOW, 1)), default)
    assert measured.ratio == pytest.approx(2.0)
    assert measured.interval == pytest.approx((2.0, 2.0))
    assert measured.is_sure
    assert str(measured) == "2.00 x [2.00, 2.00]"


def test_rounds_are_compared_in_pairs_so_that_a_slow_moment_of_the_machine_changes_nothing():
    disturbed = (10.0, 50.0, 10.0, 30.0, 10.0, 12.0)
    measured = lead(candidate(faster(disturbed, 1.25)), candidate(disturbed))
    assert measured.interval == pytest.approx((1.25, 1.25))


def test_a_lead_within_the_noise_takes_the_default():
    noisy = tuple(each * factor for each, factor in zip(SLOW, (0.9, 1.1, 0.93, 1.1, 0.95, 0.9), strict=True))
    models = {"plain": candidate(SLOW), "other": candidate(noisy)}
    chosen, leads = fastest(models, "plain")
    assert leads["other"].ratio > 1
    assert leads["other"].interval[0] < 1
    assert chosen == "plain"


def test_of_several_sure_leads_the_greatest_wins():
    models = {"plain": candidate(SLOW), "b": candidate(faster(SLOW, 1.2)), "c": candidate(faster(SLOW, 1.5))}
    chosen, leads = fastest(models, "plain")
    assert (chosen, set(leads)) == ("c", {"b", "c"})


def test_a_single_candidate_needs_no_lead():
    assert fastest({"plain": candidate(SLOW)}, "plain") == ("plain", {})


def test_the_figures_are_the_same_after_json():
    report = CandidatesReport(cpu="a CPU", threads=1, candidates={"plain": candidate(SLOW, SLOW)})
    assert CandidatesReport.from_json(report.to_json()) == report
    assert math.isclose(report.candidates["plain"].latencies[0].p50_ms, 10.05)


def test_texts_of_samples_are_left_out():
    assert "a secret" not in str(without_texts(ACCURACY).to_json())
    assert without_texts(ACCURACY).cosine.sample == "line 1"


def test_the_median_of_a_round_is_in_milliseconds():
    assert medians([[0.001, 0.003, 0.002], [0.005]]) == (2.0, 5.0)


def test_the_name_of_a_runtime_becomes_a_parameter():
    assert parameter("tensorrt-rtx") == "model_tensorrt_rtx"
