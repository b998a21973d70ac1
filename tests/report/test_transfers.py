"""The bars of transfers in the live view, and the same event as JSON and in plain lines."""

import json

import pytest

from engine.events import Moved, Planned
from engine.report import json_lines, plain, transfers
from engine.report.live import LiveReport

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
    assert transfers.title(Moved("out", "there", jobs, 0, 1)) == "fetch, export, fuse and 1 more to there"


def test_a_transfer_is_one_event_of_json_and_no_plain_line():
    assert json.loads(json_lines.line(HALF)) == {
        "event": "transfer", "direction": "in", "remote": "s3://team/recipe", "jobs": ["package"],
        "bytes": 20_000_000, "of": 40_000_000,
    }  # fmt: skip
    assert plain.lines(HALF, many=False) == []
