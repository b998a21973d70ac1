"""Builds in a real pseudo-terminal of several sizes, recorded by a terminal in memory: what a user sees reads well."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("pyte", reason="pyte, the terminal in memory, is not installed: the extra `dev-terminal`")

import terminal
from terminal_project import Project

SIZES = [(80, 24), (60, 20), (200, 50)]
BUILD = ("build", "r.yaml", "--to", "last")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def size(request):
    return request.param


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def record(project, size, *options, **others):
    columns, rows = size
    words = (*BUILD, *options)
    return terminal.record(words, project.folder, columns=columns, rows=rows, environment=project.environment, **others)


def record_again(project, size):
    """Record a build that is answered from its snapshot; none is kept if another process changes a watched folder."""
    for _ in range(4):
        again = record(project, size)
        if again.last[0].startswith("cached "):
            break
    return again


@pytest.mark.sample(1)
def test_a_cold_build_shows_what_runs_and_a_cached_one_a_line_for_each_job(project, size):
    project.recipe(seconds=0.5)
    cold = record(project, size)
    assert cold.code == 0
    assert cold.has_shown("slow running", " of 10", "0 of 2 jobs, 1 running")
    assert [line.split()[:3] for line in cold.last[:2]] == [["+", "slow", "built"], ["+", "last", "built"]]
    assert cold.last[-1].startswith("built in ")
    cached = record_again(project, size)
    assert cached.code == 0
    assert cached.last[:2] == ["cached   slow", "cached   last"]
    assert cached.last[-1].startswith("up to date in ")
    assert record(project, size, "-q").last == []


@pytest.mark.sample(1)
def test_a_failed_build_shows_the_error_its_hint_and_the_end(project, size):
    project.recipe(last="{fails: true}")
    failed = record(project, size)
    assert failed.code == 1
    for line in ("last failed", "  the number is wrong", "    it is 0", "  hint: write another number"):
        assert line in failed.last
    assert any(line.startswith("failed in ") for line in failed.last)
    assert failed.last[-1] == "failed   last: the number is wrong"
    assert b"\x1b[1;31mlast failed" in failed.raw  # in colour
    assert b"\x1b[1;31mlast failed" not in record(project, size, "--color", "never").raw


@pytest.mark.sample(1)
def test_an_interrupted_build_says_which_jobs_were_stopped(project, size):
    project.recipe(seconds=600)
    stopped = record(project, size, until=lambda screen: any("part 1 of 10" in line for line in screen))
    assert stopped.code == 130
    assert any("slow stopped" in line and "interrupted" in line for line in stopped.last)
    assert stopped.last[-1].startswith("interrupted in ")


@pytest.mark.whole("test_jobs_that_begin_are_shown_with_the_time_that_is_left_then_counted")
def test_another_builder_is_waited_for_by_name(project, size):
    project.recipe(seconds=600)
    environment = {**os.environ, **project.environment}
    command = [sys.executable, "-m", "engine", *BUILD]
    with subprocess.Popen(command, cwd=project.folder, env=environment, stderr=subprocess.PIPE, text=True) as other:
        for line in other.stderr:
            if line.startswith("running"):
                break
        name = f"waiting for process {other.pid}"
        second = record(project, size, until=lambda screen: any(name in line for line in screen))
        other.terminate()
        other.communicate()
    assert second.has_shown(name)
    assert second.code == 130


@pytest.mark.whole("test_counts_stand_for_the_jobs_that_have_ended")
def test_a_matrix_of_90_variants_fits_on_the_screen(project, size):
    project.recipe(variants=90)
    cold = record(project, size, "-j", "2")
    assert cold.code == 0
    assert cold.has_shown(" of 180 jobs, ", " running")
    assert len(cold.last) < size[1]
    again = record_again(project, size)
    assert again.last[0] == "cached   180 jobs of 90 variants"
    assert len(again.last) == 2
    assert len(record(project, size, "-v").last) > 180


def test_piped_output_has_no_control_characters(project):
    project.recipe(last="{gpu: T4}")
    command, environment = [sys.executable, "-m", "engine", *BUILD], {**os.environ, **project.environment}
    done = subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, check=False)
    assert done.returncode == 3
    assert not CONTROL.search((done.stdout + done.stderr).decode())
