"""The Python processes of a server, as the system lists them: which of them ended although nobody ended them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.server.stubs import Stubs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a thread")
PATIENCE = 30.0


@pytest.fixture
def instance():
    """A child of this process that looks like the process of the model `some_model`."""
    words = [sys.executable, "-c", "input()", "/models/some_model/1/model.py", "region", "some_model_0_0", "DEFAULT"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():  # it is empty for a moment after the start
            time.sleep(0.01)
        yield process
        process.kill()


def _after_the_end(stubs, process):
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while not (dead := stubs.dead()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return dead


def test_a_process_that_ended_by_itself_is_dead_until_its_end_is_noticed(instance):
    stubs = Stubs(os.getpid())
    assert stubs.dead() == {}
    reason = {"some_model": "Stub process 'some_model_0_0' has ended."}
    assert _after_the_end(stubs, instance) == reason
    assert stubs.dead() == reason
    instance.wait()
    assert stubs.dead() == {}


def test_a_child_that_runs_no_model_is_none_of_them():
    stubs = Stubs(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert stubs.dead() == {}
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert stubs.dead() == {}


def test_a_server_that_is_not_there_has_no_processes(instance):
    instance.kill()
    instance.wait()
    assert Stubs(instance.pid).dead() == {}
