"""Asking for a GPU never yields a CPU's numbers under its name: every door, on a machine without CUDA."""

import json
import os

import models
import pytest

from engine.machine import cuda
from engine.runtimes.onnxruntime.providers import TENSORRT_LIBRARIES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here: tests/gpu runs on it"),
    pytest.mark.skipif(os.name != "posix", reason="the stand-in for nvidia-smi is a shell script"),
]

RECIPE = """\
name: classes
model: {source: model.onnx}
target: {device: T4, provider: PROVIDER}
profiles:
  - {batch: [1, 1, 4], sequence: [1, 16, 32]}
bench:
  shapes: [{batch: 1, sequence: 8}]
"""


@pytest.fixture
def project(empty):
    models.onnx_text(empty.folder / "model.onnx")
    for provider in ("cuda", "tensorrt"):
        (empty.folder / f"{provider}.yaml").write_text(RECIPE.replace("PROVIDER", provider))
    return empty


def claim_a_t4(project):
    """A machine that says it has a T4, onnxruntime-gpu and TensorRT: a stand-in for nvidia-smi, and empty files."""
    folder = project.folder / "claims"
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'Tesla T4, 7.5, 550.54.15'\n")
    program.chmod(0o755)
    metadata = folder / "onnxruntime_gpu-1.31.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.31.1\n")
    (folder / "tensorrt_libs").mkdir()
    for name in TENSORRT_LIBRARIES.names:
        (folder / "tensorrt_libs" / name).touch()
    paths = [str(folder), project.environment.get("PYTHONPATH", "")]
    project.environment |= {
        "PATH": f"{folder}{os.pathsep}{project.environment['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


@pytest.mark.sample(1)
@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
@pytest.mark.whole("test_a_machine_that_only_claims_to_have_it_fails_and_stores_nothing")
def test_without_the_gpu_what_runs_on_it_waits(project, provider):
    ends = {event["job"]: event for event in project.events(f"{provider}.yaml", expect=3) if event["event"] == "end"}
    libraries = {"cuda": "", "tensorrt": " and TensorRT 10"}[provider]
    assert ends["validate"]["for"] == f"T4 (sm_75) with onnxruntime-gpu{libraries}"
    assert {ends[job]["state"] for job in ("bench", "package")} == {"skipped"}
    assert not (project.folder / "build").exists()
    shown = json.loads(project("show", f"{provider}.yaml", "--json", expect=0).stdout)
    assert "bench" not in json.dumps([step for step in shown[0]["steps"] if step["artifact"]])


@pytest.mark.sample(1)
@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
def test_a_machine_that_only_claims_to_have_it_fails_and_stores_nothing(project, provider):
    claim_a_t4(project)
    events = project.events(f"{provider}.yaml", expect=1)
    ends = {event["job"]: event for event in events if event["event"] == "end"}
    assert ends["validate"]["state"] == "failed"
    assert "There is no GPU here that CUDA programs can use" in ends["validate"]["error"]["what"]
    assert {ends[job]["state"] for job in ("bench", "package")} == {"skipped"}
    records = [json.loads(path.read_text().partition("\n")[2] or "{}") for path in records_of(project)]
    assert [record for record in records if record.get("job") in {"validate", "bench", "package"}] == []
    assert not (project.folder / "build").exists()


def records_of(project):
    return sorted((project.folder / "cache" / "records").glob("*.json"))
