"""One audit hook serves planning and jobs, and functions of Python are replaced only while somebody listens to them."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from engine import plugins
from engine.builder import audit, planning_reads

ENVIRONMENT = type(os.environ)


@pytest.fixture(autouse=True)
def silence():
    yield
    audit.hand_to({})


def noting(events, name):
    return {name: lambda arguments, frame: events.append((name, arguments[0], frame.f_code.co_name))}


def test_only_the_present_listener_hears_of_a_read_with_the_frame_of_the_code_that_reads(tmp_path):
    first, second = [], []
    audit.hand_to(noting(first, "os.listdir"))
    os.listdir(str(tmp_path))
    audit.hand_to(noting(second, "os.listdir"))
    os.listdir(str(tmp_path))
    audit.hand_to({})
    os.listdir(str(tmp_path))
    name = "test_only_the_present_listener_hears_of_a_read_with_the_frame_of_the_code_that_reads"
    assert first == second == [("os.listdir", str(tmp_path), name)]


def test_a_question_for_which_python_has_no_event_is_one_as_long_as_somebody_listens(tmp_path):
    before, events = os.stat, []
    audit.hand_to(noting(events, "os.stat"))
    assert (tmp_path / "absent").exists() is False
    assert os.stat(path=tmp_path).st_ino == before(tmp_path).st_ino
    assert [os.fspath(path) for _, path, _ in events] == [str(tmp_path / "absent"), str(tmp_path)]
    audit.hand_to({})
    assert os.stat is before


def test_code_that_is_left_out_causes_no_event(tmp_path):
    events = []
    audit.hand_to(noting(events, "os.listdir"), without=(__file__,))
    os.listdir(tmp_path)
    assert events == []


def test_an_error_of_a_handler_is_no_error_of_the_code_that_reads(tmp_path):
    audit.hand_to({"open": lambda *_: 1 / 0, "os.stat": lambda *_: 1 / 0})
    assert not (tmp_path / "absent").exists()
    (tmp_path / "file").write_text("text")


def test_planning_replaces_functions_only_where_a_package_brings_plugins_and_never_the_environment(monkeypatch):
    before = os.stat
    point = EntryPoint("there", "somewhere.step:There", plugins.STEPS)
    for points in ((), (point,)):
        monkeypatch.setattr(plugins, "every", lambda points=points: points)
        with planning_reads.noted():
            assert (os.stat is before) is (points == ())
            assert type(os.environ) is ENVIRONMENT
        assert os.stat is before


HOOKS = """
import sys
count, original = 0, sys.addaudithook
def counted(hook):
    global count
    count += 1
    original(hook)
sys.addaudithook = counted
import os
kind = os.environ.__class__
from engine.builder import planning_reads
from engine.builder.trace import hook
for _ in range(2):
    with planning_reads.noted():
        pass
hook.install()
assert os.environ.__class__ is kind
print(count)
"""


def test_a_process_has_one_audit_hook_however_often_it_plans_and_runs_jobs():
    assert subprocess.run([sys.executable, "-c", HOOKS], check=True, capture_output=True).stdout == b"1\n"
