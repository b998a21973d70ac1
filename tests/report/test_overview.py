"""A few values of each variant: its state, its figures, and those of the build before."""

from types import SimpleNamespace

import pytest

from engine.errors import StepError
from engine.report import overview
from engine.report.overview import VariantOverview
from engine.store.history import HeadlineFigures, MeasuredLatency, PastBuild


def finding(state="cached", waits_for=None, error=None):
    return SimpleNamespace(state=state, waits_for=waits_for, error=error)


@pytest.mark.parametrize(
    ("findings", "state"),
    [
        ([finding(), finding()], "up to date"),
        ([finding("new"), finding("unknown")], "not built"),
        ([finding(), finding("stale"), finding("unknown")], "2 of 3 jobs to build"),
        ([finding(), finding("new", waits_for="a T4")], "waits for a T4"),
        ([finding(), finding("unknown", error=StepError("the model is gone"))], "error: the model is gone"),
    ],
)
def test_the_state_of_a_variant_follows_from_its_jobs(findings, state):
    assert overview.state_of(findings) == state


def latency(p50, place="batch 1"):
    return MeasuredLatency(place=place, p50_ms=p50, interval=(p50, p50))


def build(*latencies):
    return PastBuild(at=1.0, name="x", state="built", jobs={}, figures=HeadlineFigures(latencies=latencies))


def variant(builds, *latencies):
    figures = HeadlineFigures(latencies=latencies)
    return VariantOverview("x", "", "int8", "cpu", "up to date", figures, builds)


def test_a_latency_is_compared_with_the_last_build_that_measured_another_one_there():
    builds = [build(latency(4.0)), build(latency(2.0)), build(latency(9.0, "batch 9")), build(latency(1.0))]
    assert variant(builds, latency(1.0)).change.ratio == 0.5


@pytest.mark.parametrize("builds", [[], [build(latency(1.0))], [build(latency(9.0, "batch 9"))]])
def test_without_an_earlier_measurement_there_is_nothing_to_compare(builds):
    assert variant(builds, latency(1.0)).change is None
    assert variant(builds).change is None
