"""The history of a variant's builds, as a note of the store."""

from dataclasses import replace

import pytest

from engine.digest import Digest
from engine.key import Change
from engine.recipe.load import load
from engine.store import history
from engine.store.heads import subject_of
from engine.store.history import HeadlineFigures, JobRun, MeasuredLatency, PastBuild
from engine.store.store import Store

ONE, TWO = (Digest(digit * 32) for digit in "12")
LATENCY = MeasuredLatency(place="batch 1", p50_ms=2.0, interval=(1.9, 2.1), p95_ms=3.0)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.fixture
def subjects(tmp_path):
    (tmp_path / "one.yaml").write_text(
        "name: x-${precision}\nmodel: {source: hf:a/b}\nmatrix: {precision: [fp32, int8]}\n"
    )
    return [subject_of(loaded) for loaded in load(tmp_path / "one.yaml", must_exist=False)]


def build(at, key=ONE, state="built", **run):
    runs = (JobRun("fuse", **{"state": "built", "seconds": 1.5, **run}),)
    return PastBuild(at=at, name="x", state=state, jobs={"fuse": key}, runs=runs)


def test_builds_are_kept_in_order_and_read_as_they_were(store, subjects):
    figures = HeadlineFigures(size=5, cosine=0.99, metrics={"accuracy": 0.9}, latencies=(LATENCY,))
    full = PastBuild(at=2.5, name="x", state="built", jobs={"fuse": TWO}, figures=figures,
                     runs=(JobRun("fuse", "built", 1.5, (Change("options.a", None, "2"),)),))  # fmt: skip
    for each in (build(1.0), full):
        history.add(store.notes, subjects[0], each)
    assert history.of(Store(store.root).notes, subjects[0]) == [build(1.0), full]
    assert history.of(store.notes, subjects[1]) == []
    assert full.seconds == 1.5
    assert figures.latency("batch 1") == LATENCY
    assert figures.latency("batch 2") is None


def test_a_build_that_fails_as_the_last_one_did_is_noted_once(store, subjects):
    failed = build(1.0, state="failed")
    failed = replace(failed, runs=(JobRun("bench", state="failed", seconds=1.0, error="too slow"),))
    for at in (1.0, 2.0, 3.0):
        history.add(store.notes, subjects[0], replace(failed, at=at))
    assert [each.at for each in history.of(store.notes, subjects[0])] == [1.0]
    history.add(store.notes, subjects[0], build(4.0))
    history.add(store.notes, subjects[0], build(5.0))  # a job was built again
    assert [each.at for each in history.of(store.notes, subjects[0])] == [1.0, 4.0, 5.0]


def test_the_oldest_builds_leave_a_full_history(store, subjects, monkeypatch):
    monkeypatch.setattr(history, "KEPT", 5)
    for at in range(8):
        history.add(store.notes, subjects[0], build(float(at)))
    assert [each.at for each in history.of(store.notes, subjects[0])] == [3.0, 4.0, 5.0, 6.0, 7.0]


def test_a_build_of_another_form_is_left_out_and_a_damaged_note_is_empty(store, subjects):
    history.add(store.notes, subjects[0], build(1.0))
    [path] = (store.root / "history").glob("*.json")
    raw = store.notes.get("history", path.stem)["builds"]
    store.notes.keep("history", path.stem, {"builds": [{"at": "later"}, *raw]})
    assert history.of(Store(store.root).notes, subjects[0]) == [build(1.0)]
    path.write_text("nothing")
    assert history.of(Store(store.root).notes, subjects[0]) == []
