"""What waits, as a matrix that GitHub Actions takes, and as text."""

import json

import pytest
import toy
from small_builds import project_in, variant

from engine.builder.waiting import MachineNeeded, WaitingJob
from engine.builder.why import Cost, Finding
from engine.machine import drivers
from engine.report import matrix
from engine.runtimes.onnxruntime.libraries import TENSORRT
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
    line = matrix.line([machine])
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
    monkeypatch.setattr(drivers, "major_of", lambda _: None)
    hardware = Hardware(devices=HARDWARE.devices, tool="onnxruntime-gpu", libraries=TENSORRT)
    [entry] = json.loads(matrix.line([MachineNeeded(hardware, (), "recipe build r.yaml")]))["include"]
    assert entry["requirement"] == 'onnxruntime-gpu "tensorrt==10.*"'
    assert matrix.text([MachineNeeded(hardware, (), "")]).startswith(
        "T4 (sm_75) or T4G (sm_75) with onnxruntime-gpu and TensorRT 10: "
    )


def test_where_nothing_waits_the_matrix_is_empty():
    assert json.loads(matrix.line([])) == {"include": []}
    assert matrix.text([]) == "nothing waits for other hardware\n"


def test_the_text_has_the_jobs_their_costs_and_the_command(machine):
    assert matrix.text([machine]).splitlines() == [
        "T4 (sm_75) or T4G (sm_75) with tensorrt 10.x: 2 jobs, cost unknown",
        "  would build  r  begin  about 90 s",
        "  may build    r  shout  cost unknown",
        "  there: recipe build r.yaml",
    ]
