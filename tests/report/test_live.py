"""The view of a build on terminals of several sizes: what runs is visible, and nothing is wider than the screen."""

import pytest

from engine.errors import Exit, StepError
from engine.events import Ended, Finished, Planned, RunsElsewhere, Started
from engine.report.live import LiveReport
from engine.report.results import Results

SIZES = [(80, 24), (60, 20), (200, 50)]
ADVICE = "this machine has no GPU; run the same command on a machine with a T4, with the same store or remote"


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def report(request, tmp_path):
    """Return a report of a matrix of 90 variants on a terminal, with the lines that it shows as `shown()`."""
    report = LiveReport(many=True, folded=True)
    report._console.size = request.param
    for number in range(90):
        jobs = (("export", ()), ("fuse", ("export",)), ("trt-build", ("fuse",)))
        report.on_event(Planned(name(number), jobs, (("export", 60.0),)))

    def shown():
        with report._console.capture() as captured:
            report._console.print(report._view())
        lines = captured.get().splitlines()
        assert len(lines) < report._console.height
        assert all(len(line) <= report._console.width for line in lines)
        return "\n".join(lines)

    report.shown = shown
    report.log = tmp_path / "log"
    return report


def name(number):
    return f"a-network-of-the-warehouse-with-int8-for-device-{number}"


def test_counts_stand_for_the_jobs_that_have_ended(report):
    for number in range(90):
        report.on_event(Ended(name(number), "export", "cached"))
        report.on_event(Ended(name(number), "trt-build", "waiting", waits_for="T4 (sm_75)", advice=ADVICE))
    report.on_event(Ended(name(0), "fuse", "built", seconds=2))
    shown = report.shown()
    assert "cached   90 jobs of 90 variants" in shown
    assert shown.count("90 jobs for T4 (sm_75)") == 1
    assert "built    1 job" in shown
    assert "181 of 270 jobs" in shown


def test_jobs_that_run_are_always_visible_and_told_apart(report):
    for number in range(90):
        report.on_event(Ended(name(number), "export", "cached"))
    for number in (7, 41):
        report.on_event(Started(name(number), "fuse", report.log))
    report.log.write_text("fused 3 of 12 layers\n")
    shown = report.shown()
    assert "device-7  fuse" in shown
    assert "device-41  fuse" in shown
    assert "2 running" in shown
    assert "3 of 12 layers" in shown or report._console.width == 60


def test_jobs_that_begin_are_shown_with_the_time_that_is_left_then_counted(report):
    report.on_event(RunsElsewhere(name(3), "export", "process 7 on here"))
    report.on_event(Started(name(0), "export", report.log))
    assert "for process 7 on here" in report.shown()
    assert "more than 60 s left" in report.shown()  # the jobs `fuse` have not run yet
    for number in range(1, 90):
        report.on_event(Started(name(number), "export", report.log))
    assert "more" in report.shown()
    assert "90 running" in report.shown()


def test_an_interruption_says_which_jobs_it_stopped(report):
    report.on_event(Started(name(3), "export", report.log))
    report.on_event(Finished("interrupted", 2.0, Exit.INTERRUPTED, {}))
    shown = report.shown()
    assert "device-3  export" in shown
    assert "stopped" in shown
    assert "running" not in shown


def test_a_failed_job_is_printed_at_once_stays_in_the_view_and_is_the_last_line(report):
    with report._console.capture() as printed:
        report.on_event(Ended(name(5), "export", "failed", error=StepError("it is wrong", hint="mend it")))
    assert "it is wrong" in printed.get()
    assert "hint: mend it" in printed.get()
    assert "device-5  export" in report.shown()
    report.on_event(Finished("failed", 2.0, Exit.FAILED, {}))
    with report._console.capture() as printed:
        report.finish(Results("", "", ""))
    assert " ".join(printed.get().split()).endswith(f"failed {name(5)} export: it is wrong")


def test_what_the_view_cuts_is_printed_in_full_at_the_end(report, capsys):
    report.on_event(Ended(name(0), "trt-build", "waiting", waits_for="T4 (sm_75)", advice=ADVICE))
    report.on_event(Finished("waiting", 2.0, Exit.WAITING, {}))
    with report._console.capture() as printed:
        report.finish(Results("", "", ""))
    whole = " ".join((printed.get() + report.shown()).split())
    assert ADVICE in whole
