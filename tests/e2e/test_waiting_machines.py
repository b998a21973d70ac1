"""Machines that share nothing but a remote: one says what waits and waits for it, one has the (fake) T4."""

import json
import random
import shlex
import shutil
import signal
import threading
import time

import pytest
import user_caches
from fake_t4 import FakeT4
from gpu_project import ANYWHERE, ON_T4, project_in
from program import Program

pytestmark = pytest.mark.slow

RECIPE = "recipes/net0.yaml"


def settings(folder, remote):
    """Return the variables of a machine with user folders of its own."""
    return {
        "RECIPE_REMOTE": f"file://{remote}", "RECIPE_TRUST": "none",
        "XDG_CONFIG_HOME": str(folder / ".config"), "XDG_CACHE_HOME": user_caches.with_bytecode(folder / ".user"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A laptop's project, built as far as that goes, and the remote."""
    folder = tmp_path_factory.mktemp("begun")
    laptop = Program(project_in(folder / "laptop"))
    (folder / "remote").mkdir()
    laptop.environment |= settings(laptop.folder, folder / "remote")
    states = laptop.states(RECIPE, expect=3)
    assert states == {**dict.fromkeys(ANYWHERE, "built"), **dict.fromkeys(ON_T4, "skipped"), "trt-build": "waiting"}
    return folder


@pytest.fixture
def laptop(begun, tmp_path):
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    laptop = Program(tmp_path / "laptop")
    laptop.environment |= settings(laptop.folder, tmp_path / "remote")
    return laptop


@pytest.fixture
def t4(laptop, tmp_path):
    """A machine with a T4: another folder, another store, the same remote."""
    machine = FakeT4(project_in(tmp_path / "t4"), tmp_path / "machine")
    machine.environment |= settings(machine.folder, tmp_path / "remote")
    return machine


class Waiting:
    """A build that runs, by default with `--wait`; its events are read as they come."""

    def __init__(self, program, *words):
        self.process = program.start("build", RECIPE, "--json", *(words or ("--wait",)))
        self._stuck = threading.Timer(300, self.process.kill)
        self._stuck.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stuck.cancel()
        self.process.kill()
        self.process.communicate()

    def until(self, kind):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == kind:
                return event
        raise AssertionError(f"no event {kind!r}")

    def rest(self):
        events = [json.loads(line) for line in self.process.stdout]
        return events, self.process.wait(60)


def matrix(program, *words):
    return json.loads(program("build", RECIPE, "--waiting", "--json", *words, expect=0).stdout)["include"]


@pytest.mark.whole("tests/builder/test_awaiting.py waits for results that arrive")
def test_results_arrive_by_the_remote_and_the_build_that_waits_delivers_the_package(laptop, t4):
    [entry] = matrix(laptop)
    assert (entry["device"], entry["sm"], entry["version"], entry["minutes"]) == ("T4", 75, "10.x", None)
    assert [job["step"] for job in entry["jobs"]] == ["trt-build", "validate"]
    assert shlex.split(entry["command"]) == ["recipe", "build", RECIPE]
    with Waiting(laptop, "--wait", "--timeout", "4m") as waiting:
        assert waiting.until("await")["job"] == "trt-build"
        there = t4.states(RECIPE)
        assert {job: there[job] for job in ON_T4} == dict.fromkeys(ON_T4, "built")
        events, code = waiting.rest()
    ended = {event["job"]: event for event in events if event["event"] == "end"}
    assert code == 0
    assert ended["trt-build"]["arrived"]["from"] == "Tesla T4 (sm_75)"
    package = ended.pop("package")["state"]
    assert package in ("cached", "built"), "both machines may build it: the one that has the inputs first"
    assert {event["state"] for event in ended.values()} == {"cached"}
    assert events[-1]["state"] == {"cached": "up to date", "built": "built"}[package]
    assert (laptop.folder / "build" / "net0" / "net0" / "1" / "model.plan").read_bytes().startswith(b"FAKE ENGINE")
    assert matrix(laptop) == []
    [again] = matrix(laptop, "--set", "tensorrt.optimization_level=5")
    assert 0 < again["minutes"] < 5, "measured by the T4's run"
    for machine in (laptop, t4):
        machine("cache", "verify", expect=0)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.whole("tests/builder/test_awaiting.py waits for results that arrive")
def test_a_build_that_waits_ends_by_ctrl_c_and_by_its_timeout_with_what_still_waits(laptop):
    with Waiting(laptop) as waiting:
        waiting.until("await")
        waiting.process.send_signal(signal.SIGINT)
        events, code = waiting.rest()
    assert (code, events[-1].get("state")) == (3, "waiting"), events
    assert {event["job"]: event["state"] for event in events if event["event"] == "end"}["trt-build"] == "waiting"
    for _ in range(2):  # no snapshot answers in the place of a build that waits
        timed = laptop("build", RECIPE, "--wait", "--timeout", "0.1s", expect=3)
        assert timed.stderr.count("waits for: T4 (sm_75)") == 2


@pytest.mark.usefixtures("interruptible")
@pytest.mark.sample(1)
@pytest.mark.parametrize("moment", range(30))
@pytest.mark.whole("tests/builder/test_awaiting.py waits for results that arrive")
def test_ctrl_c_at_any_moment_leaves_a_last_event_with_the_exit_code(moment, laptop):
    words = ["--force", "reference"] if moment % 2 else ["--wait"]
    with Waiting(laptop, *words) as waiting:
        time.sleep(random.Random(moment).uniform(0.2, 2.5))
        waiting.process.send_signal(signal.SIGINT)
        events, code = waiting.rest()
    assert code in (3, 130, -signal.SIGINT), events
    if events:
        assert [event["exit"] for event in events if event["event"] == "build"] == [code]
        assert events[-1]["event"] == "build"


@pytest.mark.whole
def test_without_wait_the_next_build_asks_the_remote_again(laptop, t4):
    assert laptop.states(RECIPE, expect=3)["trt-build"] == "waiting"
    t4.states(RECIPE)
    assert laptop.states(RECIPE)["trt-build"] == "cached"


def test_a_timeout_without_wait_is_refused(laptop):
    assert "--timeout limits --wait" in laptop("build", RECIPE, "--timeout", "5m", expect=2).stderr
