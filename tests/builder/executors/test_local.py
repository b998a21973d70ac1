"""Workers: logs, limits, crashes, reuse."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.builder.executors.environment import for_worker
from engine.builder.executors.local import LocalExecutor
from engine.builder.executors.outcomes import last_lines
from engine.builder.worker_task import WorkerTask
from engine.step import KEY_VARIABLE


@pytest.fixture
def executor():
    workers = LocalExecutor(2)
    yield workers
    workers.close()


@pytest.fixture
def run(executor, tmp_path):
    count = iter(range(100))

    def start(step, *, time_limit=60.0, **options):
        number = next(count)
        (tmp_path / str(number)).mkdir()
        task = WorkerTask(
            step=f"toy:{step}",
            name=step.lower(),
            options=options,
            inputs={},
            out=str(tmp_path / str(number) / "out"),
            log=str(tmp_path / f"{number}.log"),
        )
        executor.submit(number, task, tools=(), variables=(), time_limit=time_limit)
        return number

    return start


def outcomes(executor, count=1, seconds=60):
    outcomes_by_ident = {}
    end = time.monotonic() + seconds
    while len(outcomes_by_ident) < count and time.monotonic() < end:
        outcomes_by_ident.update(executor.poll())
    assert len(outcomes_by_ident) == count
    return outcomes_by_ident


def only(executor):
    [outcome] = outcomes(executor).values()
    return outcome


def test_a_worker_that_dies_is_the_error_of_that_job_alone(executor, run):
    ways = {"segfault": "crashed (signal 11, Segmentation fault)", "exit": "crashed (exit code 7)"}
    for how in ways:
        run("Misbehave", how=how)
    run("Begin")
    *dead, alive = (outcome for _, outcome in sorted(outcomes(executor, 3).items()))
    assert alive.error is None
    for outcome, what in zip(dead, ways.values(), strict=True):
        assert what in outcome.error.what
        assert "last in its log: about to misbehave" in outcome.error.facts


def test_a_job_gives_its_report_its_peak_and_its_log(executor, run, tmp_path):
    run("Begin", text="abc")
    outcome = only(executor)
    assert outcome.error is None
    assert outcome.report == {"length": 3}
    assert outcome.peak_bytes > 1 << 20
    assert (tmp_path / "0" / "out" / "text.txt").read_text() == "abc"
    assert (tmp_path / "0.log").read_text() == "writing\n"


def test_memory_without_mapped_files_is_sampled_while_a_job_runs(executor, run):
    run("Slow", seconds=0.7)  # the executor takes samples five times a second
    outcome = only(executor)
    assert 1 << 20 < outcome.anonymous_bytes <= outcome.peak_bytes


def test_an_unforeseen_exception_names_itself_and_leaves_its_traceback_in_the_log(executor, run, tmp_path):
    run("Misbehave", how="bug")
    error = only(executor).error
    assert error.what == "the step 'misbehave' failed"
    assert error.facts == ("ValueError: unforeseen",)
    assert "Traceback" in (tmp_path / "0.log").read_text()


def test_the_time_in_which_the_builder_is_stopped_does_not_count_for_the_limit_of_a_step(executor, run):
    run("Begin")
    only(executor)  # the zygote is ready
    run("Slow", seconds=1.6, time_limit=1.3)
    time.sleep(1.4)  # as after SIGSTOP, the builder looks at nothing
    assert only(executor).error is None


def test_the_end_of_the_builder_ends_its_workers_in_mid_job(tmp_path):
    code = (
        "import sys, os, time; from engine.builder.executors.local import LocalExecutor;"
        "from engine.builder.worker_task import WorkerTask as Task;"
        "e = LocalExecutor(1); d = sys.argv[1];"
        "t = Task('toy:Slow', 'slow', {'seconds': 60}, {}, d + '/out', d + '/log');"
        "e.submit(1, t, tools=(), variables=(), time_limit=99);"
        "time.sleep(2); print(e._zygotes[0].pid, flush=True); os.kill(os.getpid(), 9)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    worker = int(ended.stdout)
    for _ in range(100):
        if not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split()[2]:
            return
        time.sleep(0.1)
    pytest.fail("the worker outlived its builder")


UNSEEN = (
    *("SECRET_THING", "PYTHONPATH", "OMP_NUM_THREADS", "USER", "LOGNAME", "LANG", "PWD", "CI", "LD_PRELOAD", "TERM"),
    *("HF_ANYTHING", "HUGGING_FACE_ANYTHING", "XDG_ANYTHING", "CUDA_HOME", "CUDA_PATH", "CUDA_LAUNCH_BLOCKING"),
    *("NVIDIA_TF32_OVERRIDE", "NVIDIA_VISIBLE_DEVICES", "VIRTUAL_ENV", "RECIPE_SIGNING_KEY", "REQUESTS_CA_BUNDLE"),
)
"""Variables that a user may have set, and that no worker sees unless a step names them."""


def test_workers_see_a_clean_environment():
    around = {"PATH": "/bin", "HF_ENDPOINT": "x", **dict.fromkeys(UNSEEN, "1")}
    seen = for_worker(environment=around)
    assert for_worker(UNSEEN, around).items() >= around.items()
    assert seen["PATH"] == "/bin"
    assert seen["HF_ENDPOINT"] == "x"
    assert seen["PYTHONHASHSEED"] == "0"
    assert not seen.keys() & set(UNSEEN)


def test_a_job_finds_no_variable_of_the_user_but_those_of_the_list(executor, run, monkeypatch):
    for name in UNSEEN:
        monkeypatch.setenv(name, "1")
    expected = for_worker()
    run("Environment")
    seen = dict(only(executor).report)
    assert seen.pop(KEY_VARIABLE) == ""
    assert seen == expected


def test_every_worker_has_one_time_zone_and_one_locale_unless_a_step_names_another():
    around = {"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8", "LANGUAGE": "de"}
    seen = for_worker(environment=around)
    assert (seen["TZ"], seen["LC_ALL"]) == ("UTC", "C.UTF-8")
    assert not {"LANG", "LC_NUMERIC", "LANGUAGE"} & seen.keys()
    assert for_worker(("TZ",), around)["TZ"] == "Asia/Tokyo"
    assert "TZ" not in for_worker(("TZ",), {})
    numbers = for_worker(("LC_NUMERIC",), around)
    assert numbers["LC_NUMERIC"] == "de_DE.UTF-8"
    assert not {"LC_ALL", "LANG"} & numbers.keys()


def test_no_worker_reads_bytecode_files_whatever_a_step_names():
    around = {"PYTHONPYCACHEPREFIX": "/bytecode"}
    for variables in ((), ("PYTHONPYCACHEPREFIX",)):
        assert for_worker(variables, around)["PYTHONPYCACHEPREFIX"] == os.devnull


def test_last_lines_skip_what_says_nothing(tmp_path):
    (tmp_path / "log").write_text("one\n\ntwo\n   \n")
    assert last_lines(tmp_path / "log", 1) == ["two"]
    assert last_lines(tmp_path / "nothing", 1) == []
