"""Locks between builders, and who holds them: the holder signs the lock file."""

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time

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


def test_locks_are_known_to_work_here_and_not_where_they_are_refused_or_exclude_nobody(tmp_path, monkeypatch, request):
    assert file_lock.are_supported(tmp_path)
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert not file_lock.are_supported(tmp_path)
    request.getfixturevalue("no_locks")
    assert not file_lock.are_supported(tmp_path)
    assert list(tmp_path.iterdir()) == []


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


HOLD = (
    "import sys, time\nfrom engine.store import file_lock\n"
    "lock = file_lock.try_take(sys.argv[1], task='net export')\nprint('ready', flush=True)\ntime.sleep(600)\n"
)


@pytest.fixture
def other(tmp_path):
    """Another process that holds the lock `key`."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "key")], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_holder_is_known_by_process_machine_job_and_time(other, tmp_path):
    assert file_lock.try_take(tmp_path / "key") is None
    known = file_lock.holder_of(tmp_path / "key")
    assert (known.pid, known.host, known.task) == (other.pid, os.uname().nodename, "net export")
    assert abs(known.since - time.time()) < 600
    assert str(known).startswith(f"process {other.pid} on {os.uname().nodename} (net export, since ")
    assert known.is_here()
    assert not known.is_gone()
    assert not known.is_stopped()


def test_a_holder_that_stands_still_is_told_from_one_that_works(other, tmp_path):
    other.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
    assert f"kill -CONT {other.pid}" in str(file_lock.holder_of(tmp_path / "key"))
    other.send_signal(signal.SIGCONT)


def test_a_holder_that_has_ended_while_its_lock_is_held_is_noticed(other, tmp_path):
    """A process that the holder started may have the lock file open."""
    with open(tmp_path / "left", "w") as file:
        other.kill()
        other.wait()
        fcntl.flock(file, fcntl.LOCK_EX)
        signature = (tmp_path / "key").read_text()
        (tmp_path / "left").write_text(signature)
        assert "which has ended" in str(file_lock.holder_of(tmp_path / "left"))


def test_a_process_number_of_another_machine_or_container_says_nothing_here(tmp_path):
    for host, space in (("elsewhere", file_lock._space()), (os.uname().nodename, "pid:[1]")):
        stranger = file_lock.Holder(2**22 + 1, host, space, 0.0, "net export")
        assert not stranger.is_gone()
        assert not stranger.is_stopped()
        assert "ended" not in str(stranger)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "\0" * 10])
def test_a_lock_that_nobody_has_signed_has_no_known_holder(text, tmp_path):
    (tmp_path / "key").write_text(text)
    assert file_lock.holder_of(tmp_path / "key") is None
    assert file_lock.holder_of(tmp_path / "missing") is None


@pytest.mark.parametrize("shared", [False, True])
def test_a_long_wait_for_a_lock_is_announced_once_with_the_holder(shared, tmp_path, monkeypatch):
    monkeypatch.setattr(file_lock, "PATIENCE", 0.05)
    texts, free = [], threading.Event()

    def tell(text):
        texts.append(text)
        free.set()

    def keep():
        with contextlib.ExitStack() as kept:
            kept.enter_context(file_lock.hold(tmp_path / "gate", task="cache gc", shared=shared))
            ready.set()
            free.wait(60)

    ready = threading.Event()
    with file_lock.hold(tmp_path / "gate", task="an earlier one"):
        pass
    thread = threading.Thread(target=keep)
    thread.start()
    ready.wait(60)
    with file_lock.announcing(tell), file_lock.hold(tmp_path / "gate"):
        thread.join()
    [text] = texts
    whom = "running builds" if shared else f"process {os.getpid()} on {os.uname().nodename} (cache gc, since "
    assert text.startswith(f"waiting for {whom}")
    assert str(tmp_path / "gate") in text
    with file_lock.announcing(tell), file_lock.hold(tmp_path / "gate"):
        pass
    assert len(texts) == 1
