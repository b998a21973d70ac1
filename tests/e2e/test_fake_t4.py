"""A native engine from recipe to package, on a machine whose GPU and TensorRT are fakes: the path, and no number."""

import json
import shutil

import pytest
from fake_t4 import FakeT4
from program import Program

RECIPE = """
name: tiny
model: {source: model}
target: {device: T4, runtime: tensorrt}
precision: fp16
profiles: {batch: [1, 2, 4], sequence: [1, 16, 64]}
bench: {shapes: [{batch: 1, sequence: 16}]}
"""
ENGINE = ("trt-build", "validate", "bench", "package")


@pytest.mark.slow
def test_what_waits_here_is_built_on_the_machine_with_the_gpu_and_found_here_again(tiny_bert, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text("")
    (project / "r.yaml").write_text(RECIPE)
    shutil.copytree(tiny_bert, project / "model")
    here, there = Program(project), FakeT4(project, tmp_path / "t4")
    waiting = here.states("r.yaml", expect=3)
    assert waiting["trt-build"] == "waiting"
    assert {waiting[job] for job in ("fetch", "export", "quantize", "validate-onnx")} == {"built"}
    built = there.states("r.yaml", expect=0)
    assert {built[job] for job in ENGINE} == {"built"}
    assert {built[job] for job in ("fetch", "export", "quantize", "validate-onnx")} == {"cached"}
    plan = project / "build" / "tiny" / "tiny" / "1" / "model.plan"
    assert plan.read_bytes().startswith(b"FAKE ENGINE")
    [told] = json.loads(here("show", "--json", str(plan), expect=0).stdout)
    assert (told["gpu"], told["tensorrt"], told["driver"]) == (["Tesla T4"], "10.13.0.35", "580.65.06")
    assert told["precision"]["engine"]["fp16"] > 50
    shutil.rmtree(project / "build")
    assert set(here.states("r.yaml", expect=0).values()) == {"cached"}
    assert plan.is_file()
    assert here.states("r.yaml", "--set", "target.device=A10", expect=3)["trt-build"] == "waiting"
    assert here.states("r.yaml", "--set", 'tensorrt.version="10.4"', expect=3)["trt-build"] == "waiting"
    assert here.states("r.yaml", "--set", "profiles.batch=[1,2,8]", expect=3)["trt-build"] == "waiting"
    again = there.states("r.yaml", "--force", "trt-build", expect=0)
    assert (again["trt-build"], again["validate"], again["package"]) == ("built", "cached", "cached")
