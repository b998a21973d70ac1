"""Steps that fork, daemonize, exec, scribble or linger: no output is filed that is not the answer to the job."""

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

import pytest
import small_builds
import toy

from engine import digest
from engine.builder.executors.local import LocalExecutor
from engine.builder.executors.outcomes import outcome
from engine.builder.worker_task import WorkerAnswer, WorkerTask
from engine.events import Ended
from engine.store.store import Store
from engine.system import processes

_COPY = "forked its worker, and the copy returned from the step, too"


@pytest.fixture(scope="module")
def shared():
    """An executor whose zygotes many tests use: no test can leave anything in them."""
    workers = LocalExecutor(1)
    yield workers
    workers.close()


@pytest.fixture
def run(shared, tmp_path):
    """Run a step to its end, and return its outcome."""
    count = iter(range(100))

    def start(how, text="mine", step="straying:Stray", time_limit=60.0):
        number = next(count)
        (tmp_path / str(number)).mkdir()
        task = WorkerTask(
            step=step, name="stray", options={"how": how, "text": text}, inputs={},
            out=str(tmp_path / str(number) / "out"), log=str(tmp_path / str(number) / "log"),
        )  # fmt: skip
        shared.submit(number, task, tools=(), variables=(), time_limit=time_limit)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for ident, ended in shared.poll():
                assert ident == number
                return ended
        raise AssertionError("no outcome")

    return start


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("fork-and-return", _COPY),
        ("fork-and-wait", _COPY),
        ("daemonize", _COPY),
        ("daemonize-and-return", _COPY),
        ("exec", "ended without an answer (exit code 0)"),
        ("child-keeps-all", "was killed from outside (signal 9)"),
        ("signal-group", "was killed from outside (signal 9)"),
    ],
)
def test_a_step_that_leaves_its_worker_fails_alone_with_the_cause(run, how, what):
    began = time.monotonic()
    stray = run(how)
    assert what in stray.error.what
    assert stray.report is None
    assert stray.files == {}
    assert time.monotonic() - began < 30
    after = run("nothing", text="next")
    assert after.error is None
    assert after.report["text"] == "next"
    assert after.files["text.txt"][1] == digest.of_bytes(b"next")


@pytest.mark.parametrize(
    "how", ["fork-and-exit", "close-all", "close-standard", "scribble", "late-child", "waiting-thread"]
)
def test_a_step_that_only_makes_noise_is_answered_and_leaves_nothing_behind(shared, run, how):
    answered = run(how)
    assert answered.error is None
    assert answered.report["text"] == "mine"
    assert list(answered.files) == ["text.txt"]
    zygotes = {zygote.pid for zygote in shared._zygotes}
    assert {child for pid in zygotes for child in processes.children(pid)} <= zygotes
    assert run("nothing", text="next").report["text"] == "next"


def test_an_output_is_read_when_no_thread_can_write_it_any_more(run, tmp_path):
    answered = run("late-thread")
    assert answered.error is None
    content = (tmp_path / "0" / "out" / "late.txt").read_bytes()
    assert answered.files["late.txt"] == (len(content), digest.of_bytes(content))


def test_a_zygote_that_is_killed_is_noticed_at_once(shared, tmp_path):
    task = WorkerTask("toy:Slow", "slow", {"seconds": 50}, {}, str(tmp_path / "out"), str(tmp_path / "log"))
    shared.submit(1, task, tools=(), variables=(), time_limit=99)
    end = time.monotonic() + 30
    while not (tmp_path / "out").exists():
        assert shared.poll() == []
        assert time.monotonic() < end
    zygote = shared._zygotes[-1].pid
    [worker] = processes.children(zygote)
    os.kill(zygote, signal.SIGKILL)
    began = time.monotonic()
    outcomes = []
    while not outcomes:
        outcomes = shared.poll()
    assert time.monotonic() - began < 20
    assert "was killed from outside" in outcomes[0][1].error.what
    end = time.monotonic() + 10
    while Path(f"/proc/{worker}").exists():
        assert time.monotonic() < end, "the worker outlived its zygote"


def test_a_module_with_a_thread_is_imported_by_no_process_that_forks(shared, run):
    assert run("nothing", step="threading_step:Threading").error is None
    assert "threading_step" not in [module for each in shared._zygotes for module in each.lineage.modules]


def test_a_module_that_ends_its_process_at_import_fails_its_job_alone(run):
    assert "exit code 5" in run("nothing", step="ending_step:Ending").error.what
    assert run("nothing").error is None


ANSWERED = WorkerTask("toy:Begin", "begin", {}, {}, "/out", "/log", id="1-7")


def message(task="1-7", answerer=33, **changes):
    answer = WorkerAnswer(task, answerer, {"a": 1}, None).encode().decode()
    whole = {"id": "1-7", "pid": 33, "code": 0, "copy": 0, "peak_bytes": 5, "seconds": 0.2, "files": {}, "binding": "b"}
    return {**whole, "answer": answer, **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"task": "1-6"}, {"answerer": 34}, {"id": "1-6"}, {"answer": "{}"}, {"answer": "junk"}, {"files": 3},
        {"answer": 7}, {"peak_bytes": None}, {"files": {"a": [1]}}, {"seconds": "soon"},
        {"answer": message()["answer"].replace('"a": 1', '"a": 2')},
    ],
    ids=str,
)  # fmt: skip
def test_an_answer_of_another_run_or_process_or_that_was_edited_is_an_error(changes):
    assert outcome(ANSWERED, message()).report == {"a": 1}
    assert message(**changes) != message()
    refused = outcome(ANSWERED, message(**changes))
    assert "an answer that does not belong to this run" in refused.error.what
    assert (refused.report, refused.files) == (None, {})


@pytest.mark.parametrize("line", [b"junk\n", b"[1]\n", b'{"id": "1-1"}\n', b'{"id": "nobody", "answer": "{}"}\n'])
def test_junk_from_a_zygote_ends_it_and_no_result_comes_of_it(shared, tmp_path, line):
    task = WorkerTask("toy:Slow", "slow", {"seconds": 30}, {}, str(tmp_path / "out"), str(tmp_path / "log"))
    shared.submit(1, task, tools=(), variables=(), time_limit=99)
    while not (tmp_path / "out").exists():
        assert shared.poll() == []
    ours, theirs = socket.socketpair()
    zygote = shared._zygotes[-1]
    shared._selector.unregister(zygote.control)
    real, zygote.control = zygote.control, ours
    shared._selector.register(ours, 1, zygote)
    with contextlib.closing(real), contextlib.closing(theirs):
        theirs.sendall(line)
        [(ident, ended)] = shared.poll(5)
    assert ident == 1
    assert ended.error is not None
    assert (ended.report, ended.files) == (None, {})
    assert zygote not in shared._zygotes


def test_an_answer_that_was_made_for_another_key_is_never_filed(tmp_path, monkeypatch):
    answered = []

    class Mixing(small_builds.SharedExecutor):
        """An executor that gives each job the first outcome."""

        def poll(self, timeout=0.2):
            events = super().poll(timeout)
            answered.extend(ended for _, ended in events)
            return [(ident, answered[0]) for ident, _ in events]

    monkeypatch.setattr(small_builds, "SharedExecutor", Mixing)
    project = small_builds.project_in(tmp_path)
    variants = [small_builds.variant(project, toy.Begin(text=text), name=text) for text in ("one", "two")]
    events = small_builds.build(project, *variants, slots=1, keep_going=True)
    ended = [event for event in events if isinstance(event, Ended)]
    assert sorted(event.state for event in ended) == ["built", "failed"]
    assert ["belongs to another job" in str(event.error) for event in ended if event.error] == [True]
    assert len(list(Store(tmp_path / "cache").records())) == 1
