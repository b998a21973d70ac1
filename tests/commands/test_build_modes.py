"""Modes of `recipe build`: what waits, as a matrix for GitHub Actions and as text; builds again after each change."""

import json
import signal
import subprocess
import sys
import time

import graphs
import onnx
import pytest
import toy
from program import Program
from small_builds import project_in, variant

from engine import commands
from engine.builder.waiting import MachineNeeded, WaitingJob
from engine.builder.why import Cost, Finding
from engine.commands import build_modes
from engine.errors import UsageError
from engine.machine import local_gpus
from engine.runtimes.onnxruntime.providers import TENSORRT_LIBRARIES
from engine.step import Device, Hardware

HARDWARE = Hardware(devices=(Device(name="T4", sm=75), Device(name="T4G", sm=75)), tool="tensorrt", version="10.x")


@pytest.fixture
def machine(tmp_path):
    project = project_in(tmp_path)
    [begin, shout] = variant(project, toy.Begin(), toy.Shout()).jobs
    jobs = (WaitingJob(project / "r.yaml", Finding(begin, "stale", cost=Cost(90.0))),
            WaitingJob(project / "r.yaml", Finding(shout, "unknown")))  # fmt: skip
    return MachineNeeded(HARDWARE, jobs, "recipe build r.yaml")


def test_the_matrix_is_one_line_with_an_entry_for_each_machine(machine, tmp_path):
    line = build_modes._ci_matrix([machine])
    assert "\n" not in line
    path = str(tmp_path / "r.yaml")
    assert json.loads(line) == {"include": [{
        "device": "T4", "sm": 75, "devices": [{"device": "T4", "sm": 75}, {"device": "T4G", "sm": 75}],
        "tool": "tensorrt", "version": "10.x", "requirement": '"tensorrt==10.*"', "minutes": None,
        "command": "recipe build r.yaml",
        "jobs": [
            {"recipe": path, "variant": "r", "step": "begin", "state": "would build", "minutes": 1.5},
            {"recipe": path, "variant": "r", "step": "shout", "state": "may build", "minutes": None},
        ],
    }]}  # fmt: skip


def test_the_requirement_has_what_brings_the_libraries_that_the_tool_loads(monkeypatch):
    monkeypatch.setattr(local_gpus, "major_of", lambda _: None)
    hardware = Hardware(devices=HARDWARE.devices, tool="onnxruntime-gpu", libraries=TENSORRT_LIBRARIES)
    [entry] = json.loads(build_modes._ci_matrix([MachineNeeded(hardware, (), "recipe build r.yaml")]))["include"]
    assert entry["requirement"] == 'onnxruntime-gpu "tensorrt==10.*"'
    assert build_modes._waiting_text([MachineNeeded(hardware, (), "")]).startswith(
        "T4 (sm_75) or T4G (sm_75) with onnxruntime-gpu and TensorRT 10: "
    )


def test_the_text_has_the_jobs_their_costs_and_the_command(machine):
    assert json.loads(build_modes._ci_matrix([])) == {"include": []}
    assert build_modes._waiting_text([]) == "nothing waits for other hardware\n"
    assert build_modes._waiting_text([machine]).splitlines() == [
        "T4 (sm_75) or T4G (sm_75) with tensorrt 10.x: 2 jobs, cost unknown",
        "  would build  r  begin  about 90 s",
        "  may build    r  shout  cost unknown",
        "  there: recipe build r.yaml",
    ]


RECIPE = "name: net\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n"
_SECONDS = 120


@pytest.fixture
def watch(tmp_path):
    """Start a watching build in a project, and return a function that waits for a text in its next output."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "r.yaml").write_text(RECIPE)
    onnx.save(graphs.layers(), tmp_path / "net.onnx")
    words = [sys.executable, "-m", "recipe_build", "build", "r.yaml", "--to", "fetch", "--watch"]
    with (tmp_path / "printed").open("w") as printed:
        process = subprocess.Popen(words, cwd=tmp_path, env=Program(tmp_path).environment, stderr=printed)
    read = 0

    def shows(text):
        nonlocal read
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            new = (tmp_path / "printed").read_text()[read:]
            if text in new:
                read += new.index(text) + len(text)
                return new
            time.sleep(0.05)
        raise AssertionError(f"{text!r} is not in {new!r}")

    yield process, shows, tmp_path
    process.kill()
    process.wait()
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.whole("test_a_build_that_is_interrupted_ends_with_130")
def test_each_change_is_a_round_also_after_a_wrong_recipe(watch):
    process, shows, folder = watch
    shows("built in")
    (folder / "notes.txt").write_text("no file of the build")
    time.sleep(2)
    (folder / "r.yaml").write_text(RECIPE + "# a comment\n")
    printed = shows("up to date in")
    assert "watching: r.yaml changed\n" in printed
    assert "notes.txt" not in printed
    (folder / "r.yaml").write_text(RECIPE + "bogus: 1\n")
    assert "watching: r.yaml changed\n" in shows("unknown field `bogus`")
    (folder / "r.yaml").write_text(RECIPE)
    assert "watching: r.yaml changed\n" in shows("up to date in")
    process.send_signal(signal.SIGINT)
    assert process.wait(_SECONDS) == 130
    assert "Traceback" not in (folder / "printed").read_text()


@pytest.mark.slow
def test_a_build_that_is_interrupted_ends_with_130(watch):
    process, _, _ = watch
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(_SECONDS) == 130


def test_it_is_refused_beside_what_builds_nothing():
    with pytest.raises(UsageError, match="not allowed with argument"):
        commands.parse(["build", "r.yaml", "--watch", "--dry-run"])
