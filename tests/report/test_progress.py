"""Progress: how much of a build is left, and the bars of transfers."""

import json
from pathlib import Path

import pytest

from engine.events import Ended, Moved, Planned, Started
from engine.report import json_lines, plain, progress
from engine.report.live import LiveReport
from engine.report.progress import RemainingJobs

JOBS = (("export", ()), ("fuse", ("export",)))


def after(*events, parallel=1):
    remaining = RemainingJobs(parallel)
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


HALF = Moved("in", "s3://team/recipe", ("package",), 20_000_000, 40_000_000)
OVER = Moved("in", "s3://team/recipe", (), 40_000_000, 40_000_000)


@pytest.fixture
def view():
    """Return a function that shows the live view after some events."""

    def after(*events):
        report = LiveReport(many=False)
        for event in (Planned("net", (("package", ()),)), *events):
            report.on_event(event)
        with report._console.capture() as shown:
            report._console.print(report._view(), width=200)
        return shown.get()

    return after


def test_the_live_view_shows_what_moves_and_how_much_of_how_much(view):
    shown = view(HALF)
    assert "package from s3://team/recipe" in shown
    assert "20.0/40.0 MB" in shown


def test_the_bar_is_gone_when_the_transfer_has_ended(view):
    assert view(HALF, OVER) == view()


def test_each_direction_has_a_bar_of_its_own(view):
    shown = view(HALF, Moved("out", "s3://team/recipe", ("export",), 1, 2))
    assert "package from s3" in shown
    assert "export to s3" in shown


def test_a_title_names_at_most_three_jobs():
    jobs = ("fetch", "export", "fuse", "fetch", "quantize")
    assert progress._title(Moved("out", "there", jobs, 0, 1)) == "fetch, export, fuse and 1 more to there"


def test_a_transfer_is_one_event_of_json_and_no_plain_line():
    assert json.loads(json_lines.line(HALF)) == {
        "event": "transfer", "direction": "in", "remote": "s3://team/recipe", "jobs": ["package"],
        "bytes": 20_000_000, "of": 40_000_000,
    }  # fmt: skip
    assert plain.lines(HALF, many=False) == []
