"""Measured figures in a lock: a build with the lock takes them, and never measures again while the key stands."""

import json
import shutil

import lock_edits
import lock_steps
import pytest
from lock_builds import build, built, frozen, locked, states, write

from engine.builder.job import Job
from engine.errors import LockError
from engine.events import Ended
from engine.lockfile.observe import report_of, report_rows
from engine.step import REPORT
from engine.store.store import Store

STEPS = (lock_steps.Count(), lock_steps.Decide())
pytestmark = pytest.mark.usefixtures("isa")


def outputs(lock):
    return {job: output for section in lock.machines for (_, job), output in section.outputs.items()}


def number(project, plan):
    """Return the number that the last build decided by, from the store."""
    store = Store(project / "cache")
    [section] = write(project, plan).machines
    record = store.artifact_path(section.outputs["r", "decide"].artifact) / "text.txt"
    return json.loads(record.read_text())["number"]


def test_rows_of_a_report_are_read_back():
    job = Job("r", "count", lock_steps.Count(), {})
    report = {"number": 7, "by_name": {"a.b": 7, "c": 1}, "unit": "1"}
    rows = report_rows(job, report)
    assert rows == {"number": "7", "by_name.a.b": "7", "by_name.c": "1", "unit": '"1"'}
    assert report_of(rows) == report
    assert report_rows(Job("r", "decide", lock_steps.Decide(), {}), {"chosen": "x", "more": 1}) == {"chosen": "x"}


def test_the_lock_has_the_figures_and_the_artifacts_that_follow_from_them(project):
    _, lock = built(project, *STEPS)
    locked_outputs = outputs(lock)
    assert set(locked_outputs["count"].report) == {"number", "by_name.a.b", "by_name.c", "unit"}
    assert locked_outputs["decide"].report == {"chosen": "this one"}
    assert locked_outputs["count"].artifact
    assert locked_outputs["decide"].artifact
    assert "chosen: this one" in (project / "r.lock").read_text()


@pytest.mark.parametrize("look", [locked, frozen])
def test_a_build_with_the_lock_measures_nothing_again_with_an_empty_store(project, look):
    plan, _ = built(project, *STEPS)
    before = number(project, plan)
    shutil.rmtree(project / "cache")
    events = build(project, plan, look(project, plan))
    assert states(events) == {"read": "built", "count": "cached", "decide": "built"}
    assert number(project, plan) == before
    assert set(states(build(project, plan)).values()) == {"cached"}
    store = Store(project / "cache")
    [record] = [each for each in store.records() if each.job == "count"]
    assert json.loads((store.artifact_path(record.artifact) / REPORT).read_text()) == record.report
    assert store.find(record.key) is not None


def test_a_build_with_the_lock_takes_the_locked_figures_and_not_those_of_the_store(project):
    plan, _ = built(project, *STEPS)
    before = number(project, plan)
    text = (project / "r.lock").read_text()
    build(project, plan, force=frozenset({"count"}))
    assert number(project, plan) != before  # it writes the lock, too: `recipe lock` accepts new figures
    (project / "r.lock").write_text(text)
    events = build(project, plan, locked(project, plan))
    assert states(events)["count"] == "cached"
    assert number(project, plan) == before


def test_a_machine_of_another_kind_measures_for_itself(project, isa):
    plan, _ = built(project, *STEPS)
    isa("avx2 avx512f")
    assert states(build(project, plan, locked(project, plan)))["count"] == "built"
    assert len(write(project, plan).machines) == 2


def test_edited_figures_are_refused(project):
    plan, _ = built(project, *STEPS)
    lock = project / "r.lock"
    edited = lock.read_text().replace("by_name.c: 1", "by_name.c: 2").replace("by_name.c: '1'", "by_name.c: '2'")
    assert edited != lock.read_text()
    lock_edits.write(lock, edited)
    shutil.rmtree(project / "cache")
    events = build(project, plan, locked(project, plan))
    [error] = [event.error for event in events if isinstance(event, Ended) and event.error is not None]
    assert isinstance(error, LockError)
    assert "were edited" in error.what
