"""Whoever waits for a lock can say for whom: the holder signs the lock file."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from engine.store import file_lock, holder

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
    known = holder.holder_of(tmp_path / "key")
    assert (known.pid, known.host, known.task) == (other.pid, os.uname().nodename, "net export")
    assert abs(known.since - time.time()) < 600
    assert str(known).startswith(f"process {other.pid} on {os.uname().nodename} (net export, since ")
    assert known.is_here()
    assert not known.is_gone()
    assert not known.is_stopped()


def test_a_holder_that_stands_still_is_told_from_one_that_works(other, tmp_path):
    other.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
    assert f"kill -CONT {other.pid}" in str(holder.holder_of(tmp_path / "key"))
    other.send_signal(signal.SIGCONT)


def test_a_holder_that_has_ended_while_its_lock_is_held_is_noticed(other, tmp_path):
    """A process that the holder started may have the lock file open."""
    with open(tmp_path / "left", "w") as file:
        other.kill()
        other.wait()
        fcntl.flock(file, fcntl.LOCK_EX)
        signature = (tmp_path / "key").read_text()
        (tmp_path / "left").write_text(signature)
        assert "which has ended" in str(holder.holder_of(tmp_path / "left"))


def test_a_process_number_of_another_machine_or_container_says_nothing_here(tmp_path):
    for host, space in (("elsewhere", holder._space()), (os.uname().nodename, "pid:[1]")):
        stranger = holder.Holder(2**22 + 1, host, space, 0.0, "net export")
        assert not stranger.is_gone()
        assert not stranger.is_stopped()
        assert "ended" not in str(stranger)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "\0" * 10])
def test_a_lock_that_nobody_has_signed_has_no_known_holder(text, tmp_path):
    (tmp_path / "key").write_text(text)
    assert holder.holder_of(tmp_path / "key") is None
    assert holder.holder_of(tmp_path / "missing") is None


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
