"""The lines about a job that another builder runs, in all three reports."""

import json

import pytest

from engine.errors import Exit, StepError
from engine.events import Arrival, Awaits, Ended, Finished, Gap, Planned, RunsElsewhere
from engine.report import json_lines, plain
from engine.report.live import LiveReport
from engine.report.plain import JobCounts
from engine.report.results import Results

WAIT = RunsElsewhere("net", "export", "process 7 on here (net export, since 08:00:00)", 7, "here", 1.0)


def test_a_wait_is_two_lines_that_name_the_job_and_the_builder_or_one_event_of_json():
    lines = plain.lines(WAIT, many=False)
    assert lines == ["waiting  export", "  for process 7 on here (net export, since 08:00:00)"]
    assert plain.lines(WAIT, many=True)[0] == "waiting  net  export"
    assert json.loads(json_lines.line(WAIT)) == {
        "event": "wait", "recipe": "net", "job": "export",
        "by": {"pid": 7, "host": "here", "since": 1.0, "text": WAIT.builder},
    }  # fmt: skip


def views(job, *events):
    """Return what the live view shows of a job when it is planned, and after each event."""
    report = LiveReport(many=False)
    shown = []
    for event in (Planned("net", ((job, ()),)), *events):
        report.on_event(event)
        with report._console.capture() as captured:
            report._console.print(report._view(), width=200)
        shown.append(captured.get())
    return shown


def test_waits_stand_in_the_live_view_until_the_job_has_ended():
    _, waits, ended = views("export", WAIT, Ended("net", "export", "cached"))
    assert "waiting" in waits
    assert "process 7" in waits
    assert "process 7" not in ended
    _, waits, arrived = views("trt-build", AWAITS, ARRIVED)
    assert "for T4 (sm_75) with tensorrt" in waits
    assert "arrived after 53 s" in arrived


@pytest.mark.parametrize(("tables", "again"), [("", 0), ("the table of another variant\n", 1)])
def test_errors_come_again_below_the_tables_of_other_variants(tables, again, capsys):
    report = plain.PlainReport(many=True)
    report.on_event(Ended("net", "fuse", "failed", error=StepError("it is wrong")))
    report.on_event(Finished("failed", 2.0, Exit.FAILED, {}))
    report.finish(Results(tables, tables, ""))
    lines = capsys.readouterr().err.splitlines()
    assert lines.count("failed   net  fuse: it is wrong") == again
    assert lines[-1].startswith("failed")


AWAITS = Awaits("net", "trt-build", "T4 (sm_75) with tensorrt", "run it there")
ARRIVED = Ended("net", "trt-build", "cached", arrival=Arrival(53.2, "Tesla T4"))


def test_an_awaited_result_has_lines_and_an_event_of_json_when_the_wait_begins_and_when_it_arrives():
    lines = plain.lines(AWAITS, many=False)
    assert lines == ["waiting  trt-build", "  waits for: T4 (sm_75) with tensorrt; run it there"]
    assert plain.lines(ARRIVED, many=False) == ["cached   trt-build  arrived after 53 s, made on Tesla T4"]
    assert json.loads(json_lines.line(AWAITS)) == {
        "event": "await", "recipe": "net", "job": "trt-build", "for": "T4 (sm_75) with tensorrt",
        "advice": "run it there",
    }  # fmt: skip
    assert json.loads(json_lines.line(ARRIVED))["arrived"] == {"after": 53.2, "from": "Tesla T4"}


def test_cached_jobs_are_one_line_waiting_ones_a_line_for_each_device_and_news_is_never_folded():
    folded = JobCounts()
    for variant in ("a", "b"):
        for job in ("export", "fuse"):
            assert folded.take(Ended(variant, job, "cached"))
        assert folded.take(Ended(variant, "trt-build", "waiting", waits_for="T4", advice="run it there"))
    assert folded.take(Ended("a", "bench", "waiting", waits_for="L4", advice="run it there"))
    assert folded.take(Ended("a", "package", "skipped"))
    assert folded.lines() == [
        "cached   4 jobs of 2 variants",
        "waiting  2 jobs for T4; run it there",
        "waiting  1 job for L4; run it there",
        "skipped  1 job of 1 variant, because an earlier job failed or waits",
    ]
    folded = JobCounts()
    news = (
        Ended("a", "fuse", "built"),
        Ended("a", "fuse", "failed", error=StepError("wrong")),
        Ended("a", "fuse", "cached", arrival=Arrival(1.0, "T4")),
        Ended("a", "fuse", "cached", gaps=(Gap("file", "x"),)),
    )
    assert not any(map(folded.take, news))
    assert folded.lines() == []
