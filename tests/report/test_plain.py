"""The lines about a job that another builder runs, in all three reports."""

import json

from engine.events import Ended, Planned, RunsElsewhere
from engine.report import json_lines, plain
from engine.report.live import LiveReport

WAIT = RunsElsewhere("net", "export", "process 7 on here (net export, since 08:00:00)", 7, "here", 1.0)


def test_a_wait_is_two_lines_that_name_the_job_and_the_builder():
    lines = plain.lines(WAIT, many=False)
    assert lines == ["waiting  export", "  for process 7 on here (net export, since 08:00:00)"]
    assert plain.lines(WAIT, many=True)[0] == "waiting  net  export"


def test_a_wait_is_one_event_of_json_with_the_process():
    event = json.loads(json_lines.line(WAIT))
    assert event == {
        "event": "wait", "recipe": "net", "job": "export",
        "by": {"pid": 7, "host": "here", "since": 1.0, "text": WAIT.builder},
    }  # fmt: skip


def test_a_wait_stands_in_the_live_view_until_the_job_has_ended():
    report = LiveReport(many=False)
    report.on_event(Planned("net", (("export", ()),)))
    report.on_event(WAIT)
    with report._console.capture() as shown:
        report._console.print(report._view(), width=200)
    assert "waiting" in shown.get()
    assert "process 7" in shown.get()
    report.on_event(Ended("net", "export", "cached"))
    with report._console.capture() as shown:
        report._console.print(report._view(), width=200)
    assert "process 7" not in shown.get()
