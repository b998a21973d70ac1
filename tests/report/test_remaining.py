"""What is left of a build: counted jobs, and a forecast from the durations of earlier runs."""

from pathlib import Path

from engine.events import Ended, Planned, Started
from engine.report.remaining import Remaining

JOBS = (("export", ()), ("fuse", ("export",)))


def after(*events, parallel=1):
    remaining = Remaining(parallel)
    for event in events:
        remaining.take(event)
    return remaining.line()


def test_jobs_are_counted():
    assert after(Planned("a", JOBS), Ended("a", "export", "cached")).startswith("1 of 2 jobs, 0.0 s")


def test_the_forecast_adds_what_earlier_runs_took():
    known = Planned("a", JOBS, (("export", 20.0), ("fuse", 30.0)))
    assert after(known, Started("a", "export", Path("log"))).endswith("about 50 s left")
    assert after(known, Started("a", "export", Path("log")), parallel=2).endswith("about 30 s left")


def test_a_job_of_unknown_duration_makes_the_forecast_a_lower_bound():
    known = Planned("a", JOBS, (("export", 20.0),))
    assert after(known, Started("a", "export", Path("log"))).endswith("more than 20 s left")


def test_a_job_that_variants_share_counts_once():
    plans = [Planned(name, JOBS, (("export", 20.0), ("fuse", 30.0))) for name in "abc"]
    assert after(*plans, Started("a", "export", Path("log"))).endswith("about 50 s left")


def test_no_forecast_is_made_where_nothing_is_known():
    assert "left" not in after(Planned("a", JOBS), Started("a", "export", Path("log")))
