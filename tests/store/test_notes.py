"""Kept files: shared by runs with the same rows, and safe to lose."""

import os

import pytest
from keeping_steps import Fail, Tune
from small_builds import build, project_in, states, variant

from engine.store import verification
from engine.store.collection import CollectionLimits, collect
from engine.store.notes import kept_name
from engine.store.store import Store


@pytest.fixture
def project(tmp_path):
    return project_in(tmp_path)


@pytest.fixture
def store(project):
    return Store(project / "cache")


def known(project, step):
    events = build(project, variant(project, step))
    assert set(states(events).values()) == {"built"}
    [record] = [each for each in Store(project / "cache").records() if each.key["options.number"] == str(step.number)]
    return record.report["known"]


def test_a_later_run_finds_what_an_earlier_one_left(project):
    assert [known(project, Tune(number=number)) for number in (1, 2)] == [0, 1]
    assert known(project, Tune(number=3, gpu="A10")) == 0, "what is kept for one GPU is not lent to another"


def test_a_run_that_fails_leaves_nothing(project, store):
    assert states(build(project, variant(project, Fail()))) == {"fail": "failed"}
    assert not store.layout.kept.exists()


@pytest.fixture
def kept(store, tmp_path):
    """The kept file `tuning` of a store."""
    (tmp_path / "made").write_text("timings")
    store.notes.take("tuning", tmp_path / "made")
    [path] = store.layout.kept.iterdir()
    return path


def test_a_damaged_file_is_not_lent_and_verify_takes_it_away(store, kept, tmp_path):
    place = tmp_path / "lent"
    store.notes.lend("tuning", place)
    assert place.read_text() == "timings"
    place.unlink()
    for raw in (kept.read_bytes()[:-1] + b"!", b"short"):
        kept.write_bytes(raw)
        store.notes.lend("tuning", place)
        assert not place.exists()
    verdict = verification.verify(store.root, parallel=1)
    assert [damage.path for damage in verdict.damages] == [kept]
    assert not kept.exists()


def test_what_nobody_used_for_long_is_collected(store, kept, tmp_path):
    limits = CollectionLimits(older_than_seconds=3600.0)
    os.utime(kept, (0, 0))
    store.notes.lend("tuning", tmp_path / "lent")
    collect(store, limits, dry_run=False)
    assert kept.exists(), "to lend it is to use it"
    os.utime(kept, (0, 0))
    collect(store, limits, dry_run=False)
    assert not kept.exists()


def test_a_step_keeps_nothing_unless_it_says_by_which_rows():
    assert kept_name("tune", (), {}) is None
    assert kept_name("tune", Tune.kept_by, {"tools.pyyaml": "6"}) is None
    assert kept_name("tune", Tune.kept_by, {"tools.pyyaml": "6", "options.gpu": "T4"})
