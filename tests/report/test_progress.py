"""Progress: how much of a build is left, and the bars of transfers."""

import json
from dataclasses import replace
from pathlib import Path

from report.test_plain import views

from engine.events import Ended, Moved, Planned, Started
from engine.report import json_lines, plain
from engine.report.progress import RemainingJobs

JOBS = (("export", ()), ("fuse", ("export",)))


def after(*events, parallel=1):
    remaining = RemainingJobs(parallel)
    for event in events:
        remaining.take(event)
    return remaining.line()


def test_jobs_are_counted_and_the_forecast_adds_what_earlier_runs_took():
    assert after(Planned("a", JOBS), Ended("a", "export", "cached")).startswith("1 of 2 jobs, 0.0 s")
    started = Started("a", "export", Path("log"))
    known = Planned("a", JOBS, (("export", 20.0), ("fuse", 30.0)))
    assert after(known, started).endswith("about 50 s left")
    assert after(known, started, parallel=2).endswith("about 30 s left")
    assert after(*(replace(known, recipe=name) for name in "abc"), started).endswith("about 50 s left")  # shared jobs
    assert after(replace(known, seconds=(("export", 20.0),)), started).endswith("more than 20 s left")
    assert "left" not in after(Planned("a", JOBS), started)


HALF = Moved("in", "s3://team/recipe", ("package",), 20_000_000, 40_000_000)
OVER = Moved("in", "s3://team/recipe", (), 40_000_000, 40_000_000)


def test_a_transfer_has_a_bar_for_each_direction_until_it_has_ended_and_is_one_event_of_json():
    jobs = ("fetch", "export", "fuse", "fetch", "quantize")
    shown = views("package", HALF, Moved("out", "s3://team/recipe", jobs, 1, 2))[-1]
    assert "package from s3://team/recipe" in shown
    assert "20.0/40.0 MB" in shown
    assert "fetch, export, fuse and 1 more to s3" in shown
    planned, *_, over = (each.splitlines() for each in views("package", HALF, OVER))
    assert over[:-1] == planned[:-1]  # the last line has the time
    assert json.loads(json_lines.line(HALF)) == {
        "event": "transfer", "direction": "in", "remote": "s3://team/recipe", "jobs": ["package"],
        "bytes": 20_000_000, "of": 40_000_000,
    }  # fmt: skip
    assert plain.lines(HALF, many=False) == []
