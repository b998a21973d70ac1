"""Locks between builders."""

import errno
import fcntl
import os
import subprocess
import sys

import pytest

from engine.store import file_lock, presence
from engine.store.store import Store


@pytest.fixture
def no_locks(monkeypatch):
    """A file system that has no locks."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_a_lock_excludes_others_and_leaves_no_file(tmp_path):
    lock = file_lock.try_take(tmp_path / "key")
    assert file_lock.try_take(tmp_path / "key") is None
    lock.release()
    assert list(tmp_path.iterdir()) == []


def test_who_waited_on_the_file_of_a_released_lock_does_not_hold_it(tmp_path):
    """The file may be removed or replaced before the waiting process locks it."""
    path = tmp_path / "key"
    first = file_lock.try_take(path)
    late = os.open(path, os.O_RDWR)
    first.release()
    second = file_lock.try_take(path)
    fcntl.flock(late, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the late one has a lock, but on a file without a name
    assert file_lock.try_take(path) is None
    os.close(late)
    second.release()


def test_locks_are_known_to_work_here_and_not_to_work_elsewhere(tmp_path, no_locks):
    assert not file_lock.work(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_locks_work_on_this_disk(tmp_path):
    assert file_lock.work(tmp_path)


def test_locks_that_exclude_nobody_are_no_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert not file_lock.work(tmp_path)


def test_without_locks_a_store_is_usable_and_nobody_sweeps(tmp_path, no_locks):
    store = Store(tmp_path / "cache")
    assert store.try_lock("a" * 32) is not None
    with store.presence.workplace():
        other = Store(tmp_path / "cache")
        other.presence.leave()


def test_a_presence_names_what_it_uses_until_it_leaves(tmp_path):
    store = Store(tmp_path / "cache")
    store.use("a" * 32)
    assert presence.used(store.layout.staging) == {"a" * 32}
    store.leave()
    assert presence.used(store.layout.staging) == set()
    assert list(store.layout.staging.iterdir()) == []


def test_the_presence_of_a_dead_builder_counts_for_nothing(tmp_path):
    code = (
        "import sys, os; from pathlib import Path; from engine.store.store import Store;"
        "store = Store(Path(sys.argv[1])); store.use('a' * 32); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "cache")], check=False)
    store = Store(tmp_path / "cache")
    assert presence.used(store.layout.staging) == set()
    assert presence.sweep(store.layout.staging, store.layout.gate) == 1
