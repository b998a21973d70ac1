"""Starts in processes of their own: each case runs in a fresh Python, since a process with threads is not forked."""

import json
import subprocess
import sys
import threading

import pytest

from engine.errors import StepError
from engine.kit.bench import starts
from engine.kit.bench.starts import StartedModel
from engine.runtimes.runner import Runner

SECONDS = 3.0
HELD = 40 << 20
TIME = 0.05


def _load():
    import time

    def run(inputs):
        if inputs == "too large":
            raise StepError("too large")
        time.sleep(TIME)
        return bytearray(inputs or HELD)  # zeroed by the system: only what is written is resident

    held = b"x" * HELD
    time.sleep(TIME)
    return Runner("m", lambda inputs: (run(inputs), held), lambda inputs: lambda: run(inputs))


def _refuse():
    raise StepError("no GPU", ["none here"])


def _raise():
    raise RuntimeError("odd")


def _crash():
    import os
    import signal

    os.kill(os.getpid(), signal.SIGSEGV)


def _hang():
    import time

    time.sleep(60)


def _where():
    import os

    print("caches:", os.listdir(os.environ["XDG_CACHE_HOME"]))
    return _load()


LOADS = {"load": _load, "refuse": _refuse, "raise": _raise, "crash": _crash, "hang": _hang, "where": _where}


def started(tmp_path, *names, inputs="[1, 'too large']", tools=()):
    """Return the starts of these models, and what the process printed."""
    script = (
        "import json, sys; from pathlib import Path; import test_starts as t\n"
        f"models = [t.StartedModel(name=n, load=t.LOADS[n], tools={tools!r}) for n in {names!r}]\n"
        f"made = t.starts.measured(models, {inputs}, Path({str(tmp_path)!r}), seconds={SECONDS})\n"
        "print(json.dumps([each.to_json() for each in made]))"
    )
    path = [*sys.path, __file__.rpartition("/")[0]]
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": ":".join(path), "XDG_CACHE_HOME": "/nowhere"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *log, last = done.stdout.splitlines()
    return json.loads(last), log


def test_a_start_has_the_load_time_the_first_call_and_the_memory_above_that_before(tmp_path):
    [start], log = started(tmp_path, "load", tools=("numpy", "no-such-tool"))
    assert start["load_s"] >= TIME
    assert start["first_ms"] >= 1e3 * TIME
    assert 0.9 * HELD <= start["peak_mib"] * 2**20 <= 1.5 * HELD, "a shape that the model refuses counts for nothing"
    assert "reason" not in start
    assert log == [
        "load: load {load_s:.2f} s, first call {first_ms:.1f} ms, peak memory {peak_mib:.0f} MiB".format(**start)
    ]


def test_a_model_that_cannot_start_has_the_reason_and_the_others_are_measured(tmp_path):
    names = ("refuse", "raise", "crash", "hang", "load")
    made, _ = started(tmp_path, *names)
    assert [each["runtime"] for each in made] == list(names)
    assert [each.get("reason") for each in made] == [
        "no GPU; none here", "odd", "its process ended with the exit code -11",
        f"no first call within {SECONDS:g} s", None,
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_start_finds_no_caches_of_the_user(tmp_path):
    _, log = started(tmp_path, "where")
    assert log[0] == "caches: []"


def test_a_process_with_several_threads_is_not_forked(tmp_path):
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        [start] = starts.measured([StartedModel(name="m", load=_load, ours=True)], [{}], tmp_path)
    finally:
        stop.set()
        thread.join()
    assert start.ours
    assert "several threads" in start.reason


@pytest.mark.parametrize("generates", [False, True])
def test_the_first_call_of_a_model_that_generates_is_a_prepared_one(generates):
    calls = []
    runner = Runner("m", lambda _: calls.append("run"), lambda _: lambda: calls.append("prepared"))
    StartedModel(name="m", load=_load, generates=generates).first(runner, {})
    assert calls == ["prepared" if generates else "run"]
