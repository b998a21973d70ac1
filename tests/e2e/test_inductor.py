"""`runtime: inductor` through the real command line: compiled, validated, measured, packaged, and then cached."""

import json
import os
import shutil

import generators
import models
import pytest
import timm_here
import tiny_project
from program import Program

from engine.runtimes import passport_file
from engine.runtimes.execution import Execution
from engine.runtimes.inductor import passport

pytestmark = [
    pytest.mark.slow,
    pytest.mark.whole(
        "a compilation takes a minute; tests/steps/test_inductor_build.py refuses what cannot be compiled"
    ),
]

RECIPE = """\
name: tiny
model: {{source: model, task: {task}}}
target: {{device: {device}, runtime: inductor}}
profiles: [{{{profile}}}]
{samples}
bench: {{shapes: [{{{shape}}}], against: [{{runtime: pytorch}}], threads: 1}}
"""
TEXT = {"profile": "batch: [1, 2, 4], sequence: [1, 16, 32]", "shape": "batch: 1, sequence: 8"}
IMAGE = {"profile": "batch: [1, 2, 4]", "shape": "batch: 1", "samples": ""}
JOBS = ("fetch", "export", "reference", "inductor-build", "validate", "bench", "package")
EXECUTION = Execution(runtime="inductor", options={})


def project_in(folder, *, task, device="cpu", samples="validate: {samples: samples.jsonl}", **shapes):
    (folder / "pyproject.toml").write_text("")
    (folder / "samples.jsonl").write_text(tiny_project.SAMPLES)
    text = RECIPE.format(task=task, device=device, samples=samples, **{**TEXT, **shapes})
    (folder / "r.yaml").write_text(text)
    return Program(folder)


def model_of(program):
    """Return the folder of the compiled model in the package."""
    [model] = (program.folder / "build" / "tiny").glob(f"*/1/{passport.MODEL}")
    return model.parent


def build_twice(program):
    assert program.states("r.yaml") == dict.fromkeys(JOBS, "built")
    assert program.states("r.yaml") == dict.fromkeys(JOBS, "cached")
    variant = program.shown("r.yaml")
    assert variant["validation"]["cosine"]["worst"] > 0.9999
    assert {row["runtime"] for row in variant["bench"]} == {"inductor-fp32", "pytorch-fp32"}
    assert passport.load(model_of(program)).machine == passport.here(None)
    return variant


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny BERT, compiled once for all tests of this file."""
    folder = tmp_path_factory.mktemp("inductor") / "project"
    models.checkpoint(folder / "model", task="text-classification")
    program = project_in(folder, task="text-classification")
    program.variant = build_twice(program)
    return program


def test_a_model_is_built_and_is_up_to_date_at_the_second_build(tiny):
    assert "package" in {step["job"] for step in tiny.variant["steps"]}
    shown = tiny("show", str(model_of(tiny) / passport.MODEL), expect=0).stdout
    assert "axes       batch 1 to 4, sequence 1 to 32" in shown


def test_compiling_and_loading_read_nothing_that_no_row_covers(tiny):
    """The programs of the compilation are covered; packages of an environment are the business of test_own_reads."""
    for job in ("inductor-build", "validate"):
        read = tiny("why", "r.yaml", job, "--read", expect=0).stdout
        gaps = [line for line in read.splitlines() if "NOT covered" in line and " the package " not in line]
        assert gaps == []


def test_the_compilation_leaves_nothing_outside_of_the_store(tiny):
    left = [path.name for path in (tiny.folder / "cache" / "staging").rglob("*") if "inductor" in path.name]
    assert left == []


def test_a_change_of_another_runtime_or_of_the_bounds_compiles_nothing(tiny):
    changed = tiny.states("r.yaml", "--set", "validate.cosine=0.9")
    assert {job: state for job, state in changed.items() if state != "cached"} == {}


def test_a_store_that_is_copied_is_all_hits_in_another_place(tiny, tmp_path):
    shutil.copytree(tiny.folder, tmp_path / "copy", copy_function=shutil.copy2)
    assert Program(tmp_path / "copy").states("r.yaml") == dict.fromkeys(JOBS, "cached")


def test_a_model_with_another_passport_is_not_loaded(tiny, tmp_path):
    shutil.copytree(model_of(tiny), tmp_path / "model", copy_function=shutil.copy)
    file = tmp_path / "model" / passport_file.FILE
    file.chmod(0o644)
    fields = json.loads(file.read_text())
    EXECUTION.by.runner(tmp_path / "model", EXECUTION)
    fields["machine"]["torch"] = "2.0.0"
    file.write_text(json.dumps(fields))
    with pytest.raises(Exception, match="is not for this machine"):
        EXECUTION.by.runner(tmp_path / "model", EXECUTION)


def test_a_recipe_for_a_gpu_that_is_not_here_waits(tiny, tmp_path):
    shutil.copytree(tiny.folder / "model", tmp_path / "model")
    program = project_in(tmp_path, task="text-classification", device="H100")
    program("check", "r.yaml", expect=0)
    states = program.states("r.yaml", expect=3)
    assert states == {
        "fetch": "built", "export": "built", "reference": "built", "inductor-build": "waiting", "validate": "skipped",
        "bench": "skipped", "package": "skipped",
    }  # fmt: skip
    assert "waits for: H100 (sm_90) with torch" in program("build", "r.yaml", expect=3).stderr


def test_a_machine_without_a_compiler_is_told_before_the_work(tiny, tmp_path):
    shutil.copytree(tiny.folder / "model", tmp_path / "model")
    program = project_in(tmp_path, task="text-classification")
    program.environment["PATH"] = str(tmp_path)
    done = program("check", "r.yaml", expect=2)
    assert "r.yaml:3:" in done.stderr
    assert "apt install g++" in done.stderr


def test_minilm(tmp_path, minilm_checkpoint):
    shutil.copytree(minilm_checkpoint, tmp_path / "model")
    build_twice(project_in(tmp_path, task="feature-extraction"))


def test_a_vision_transformer_of_timm(tmp_path, timm, timm_folders, monkeypatch):
    program = project_in(tmp_path, task="image-classification", **IMAGE)
    timm_here.checkpoint(tmp_path / "model", "test_vit", size=160, num_classes=5)
    paths = [*timm_folders, *filter(None, [os.environ.get("PYTHONPATH")])]
    program.environment["PYTHONPATH"] = os.pathsep.join(paths)
    build_twice(program)


def test_the_encoder_of_a_t5(tmp_path):
    generators.encoder(tmp_path / "model")
    build_twice(project_in(tmp_path, task="feature-extraction"))
