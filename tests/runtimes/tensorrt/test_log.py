import pytest

from engine.runtimes.tensorrt import log as trt_progress
from engine.runtimes.tensorrt.log import Progress


@pytest.fixture
def progress(monkeypatch):
    monkeypatch.setattr(trt_progress, "_PAUSE", 0.0)
    return Progress()


def test_a_step_counts_by_the_phase_inside_it(progress):
    progress.start("building engine", None, 4)
    progress.step("building engine", 0)
    assert progress.share() == 0.25
    progress.start("timing", "building engine", 2)
    progress.step("timing", 0)
    assert progress.share() == 0.25 + 0.25 / 2


def test_what_is_done_never_falls(progress):
    progress.start("building engine", None, 1)
    for phase in ("first", "second"):
        progress.start(phase, "building engine", 2)
        progress.step(phase, 0)
        progress.finish(phase)
    assert progress.share() == 0.5


def test_the_end_is_told_even_where_steps_were_left_out(progress, capsys):
    progress.start("Building engine", None, 6)
    progress.step("Building engine", 2)
    progress.finish("Building engine")
    assert capsys.readouterr().out.splitlines() == [
        "0%  building engine",
        "50%  building engine",
        "100%  building engine",
    ]


def test_lines_come_no_more_often_than_a_person_can_read(monkeypatch, capsys):
    now = iter(range(1000))
    monkeypatch.setattr(trt_progress.time, "monotonic", lambda: next(now) * 0.1)
    progress = Progress(printed_at=0.0)
    progress.start("building engine", None, 100)
    for step in range(100):
        progress.step("building engine", step)
    assert len(capsys.readouterr().out.splitlines()) == pytest.approx(100 * 0.1 / 0.5, abs=4)


def test_a_phase_that_nobody_started_is_no_harm(progress):
    progress.step("unheard of", 3)
    progress.finish("unheard of")
    assert progress.share() == 0.0
