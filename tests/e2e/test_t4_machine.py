"""One recipe on a laptop, on a machine that says it has a T4 (a fake, see fake_t4), and on the laptop again."""

import json
import re
import shutil
import subprocess

import pytest
from fake_t4 import FakeT4
from quick_program import copied, quick

pytestmark = [
    pytest.mark.slow,
    pytest.mark.whole("test_shipped_on_a_t4.py and test_no_false_gpu.py build for the same GPU"),
]

RECIPE = """\
name: classes
model: {source: model}
target: {device: T4, runtime: tensorrt}
precision: fp16
tensorrt: {version: "10.x", cuda_graph: true}
profiles:
  - {batch: [1, 1, 4], sequence: [1, 16, 32]}
  - {batch: [1, 4, 8], sequence: [1, 8, 16]}
bench:
  shapes: [{batch: 1, sequence: 8}]
"""
ANYWHERE = ("fetch", "export", "reference", "shape-infer", "quantize", "validate-onnx", "trt-prepare")
ALL = (*ANYWHERE, "trt-build", "validate", "bench", "package")


def states(**changed):
    return {job: changed.get(job.replace("-", "_"), "cached") for job in ALL}


@pytest.fixture(scope="module")
def template(tmp_path_factory, tiny_bert, machine):
    """A project built on the laptop as far as that goes, then on the machine with the GPU; and what was built where."""
    laptop = quick(tmp_path_factory.mktemp("project"))
    (laptop.folder / "pyproject.toml").write_text("")
    (laptop.folder / "r.yaml").write_text(RECIPE)
    shutil.copytree(tiny_bert, laptop.folder / "model")
    here = laptop.states("r.yaml", expect=3)
    return laptop.folder, here, machine.at(laptop.folder).states("r.yaml")


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """The machine with the GPU."""
    return FakeT4(None, tmp_path_factory.mktemp("t4") / "machine", first=[copied()])


@pytest.fixture
def built(template, tmp_path):
    """The project, on the laptop."""
    subprocess.run(["cp", "-a", f"{template[0]}/.", tmp_path], check=True)
    return quick(tmp_path)


@pytest.fixture
def gpu_machine(built, machine):
    """The same project and cache, seen from the machine with the GPU."""
    return machine.at(built.folder)


def test_the_laptop_builds_what_any_machine_can_and_the_other_only_the_rest(template):
    _, here, there = template
    assert here == {
        **dict.fromkeys(ANYWHERE, "built"), "trt-build": "waiting",
        "validate": "skipped", "bench": "skipped", "package": "skipped",
    }  # fmt: skip
    assert there == states(trt_build="built", validate="built", bench="built", package="built")


def test_then_nothing_is_left_to_do_on_either_and_the_package_is_there(built, gpu_machine):
    assert set(built.states("r.yaml").values()) == {"cached"}
    assert set(gpu_machine.states("r.yaml").values()) == {"cached"}
    package = built.folder / "build" / "classes"
    assert (package / "classes" / "1" / "model.plan").read_bytes().startswith(b"FAKE ENGINE")
    assert (package / "classes_text" / "config.pbtxt").is_file()
    passport = json.loads((package / "classes" / "1" / "passport.json").read_text())
    assert (passport["gpu"], passport["tensorrt"], passport["sms"]) == (["Tesla T4"], "10.13.0.35", [75])


def test_without_the_gpu_why_and_show_say_on_which_machine_it_was_made(built):
    output = built("why", "r.yaml", "trt-build", expect=0).stdout
    assert re.search(r"cached +trt-build +\(made on", output)
    assert "GPU: Tesla T4 (sm_75)" in output
    plan = next((built.folder / "build").rglob("model.plan"))
    assert "Tesla T4" in built("show", str(plan), expect=0).stdout


@pytest.mark.whole("test_the_laptop_builds_what_any_machine_can_and_the_other_only_the_rest")
def test_the_second_engine_of_a_machine_is_built_with_what_the_first_measured(built, gpu_machine):
    [kept] = (built.folder / "cache" / "kept").iterdir()
    before = kept.read_bytes()
    assert gpu_machine.states("r.yaml", "--set", "tensorrt.optimization_level=5")["trt-build"] == "built"
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert len(kept.read_bytes()) >= len(before)


def test_a_recipe_is_locked_where_the_gpu_is_and_goes_by_its_lock_there(built, gpu_machine):
    gpu_machine("lock", "r.yaml", expect=0)
    assert set(gpu_machine.states("r.yaml", "--locked").values()) == {"cached"}
    assert set(built.states("r.yaml", "--frozen").values()) == {"cached"}


@pytest.mark.whole
def test_a_server_with_arm_cpus_and_the_same_gpu_builds_an_engine_of_its_own(built, tmp_path_factory):
    arm = FakeT4(built.folder, tmp_path_factory.mktemp("arm") / "machine", first=[copied()], arch="aarch64")
    assert "arch" in arm("why", "r.yaml", "trt-build").stdout
    states_there = arm.states("r.yaml")
    assert states_there["trt-build"] == "built"
    assert {states_there[job] for job in ANYWHERE} == {"cached"}
    passport = json.loads((built.folder / "build" / "classes" / "classes" / "1" / "passport.json").read_text())
    assert passport["arch"] == "aarch64"
