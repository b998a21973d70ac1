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


def test_a_damaged_file_is_not_lent_and_verify_takes_it_away(project, store):
    known(project, Tune(number=1))
    [path] = store.layout.kept.iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert known(project, Tune(number=2)) == 0
    path.write_bytes(b"short")
    verdict = verification.verify(store.root, parallel=1)
    assert [damage.path for damage in verdict.damages] == [path]
    assert not path.exists()
    assert known(project, Tune(number=3)) == 0


def test_what_nobody_used_for_long_is_collected(project, store):
    known(project, Tune(number=1))
    [path] = store.layout.kept.iterdir()
    collect(store, CollectionLimits(older_than_seconds=3600.0), dry_run=False)
    assert path.exists()
    os.utime(path, (0, 0))
    collect(store, CollectionLimits(older_than_seconds=3600.0), dry_run=False)
    assert not path.exists()


def test_a_step_keeps_nothing_unless_it_says_by_which_rows():
    assert kept_name("tune", (), {}) is None
    assert kept_name("tune", Tune.kept_by, {"tools.pyyaml": "6"}) is None
    assert kept_name("tune", Tune.kept_by, {"tools.pyyaml": "6", "options.gpu": "T4"})
