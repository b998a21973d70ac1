"""Processes: the letters of their states, and what they leave behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from engine.system import processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows processes in /proc")


@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def becomes(pid, state):
    """Wait until a process has a state; the test fails by the limit of its rounds."""
    for _ in range(500):
        if processes.state_of(pid) == state:
            return True
        time.sleep(0.01)
    return False


def test_a_process_that_is_stopped_is_seen_and_lives(child):
    os.kill(child.pid, signal.SIGSTOP)
    assert becomes(child.pid, "T")
    assert child.pid in processes.children(os.getpid())


def test_a_process_that_has_ended_is_no_child_any_more(child):
    child.kill()
    assert becomes(child.pid, "Z")
    assert child.pid not in processes.children(os.getpid())
    child.wait()
    assert processes.state_of(child.pid) == ""


def test_a_process_ends_with_all_that_it_has_started():
    code = "import subprocess, sys, time; subprocess.Popen(['sleep', '60']); print(flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    [grandchild] = processes.children(process.pid)
    processes.end(process.pid)
    process.wait()
    process.stdout.close()
    assert becomes(grandchild, "")
