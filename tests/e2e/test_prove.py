"""`recipe prove`: one command from the recipe to the archive that its user sends back."""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import fake_docker
import gpu_project
import graphs
import models
import pytest
from fake_t4 import FakeT4
from program import Program
from quick_program import quick
from tiny_project import OF_ONNX, RECIPE, SAMPLES

from engine.server import keeper

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interruptible")]

PATIENCE = 300
"""Seconds after which something hangs: nothing is judged by it."""
PARTS = ["build", "build again", "load", "ask", "compare", "load test"]
TENSORS = "name: {name}\nmodel: {{source: {source}}}\nprofiles: [{{batch: [1, 2, 8]}}]\n{more}"
ON_A_T4 = "target: {device: T4, runtime: tensorrt}\n"


@pytest.fixture(scope="module")
def project(environment, tmp_path_factory):
    """Recipes of texts and of tensors for a CPU, one for a T4, and one whose model is no model."""
    folder = tmp_path_factory.mktemp("prove")
    (folder / "pyproject.toml").write_text("")
    (folder / "samples.jsonl").write_text(SAMPLES)
    models.classifier_with_tokenizer(folder / "model")
    texts = RECIPE.replace("precision: int8", "precision: fp32").replace("model: {source: model}\n", OF_ONNX)
    (folder / "texts.yaml").write_text(texts.partition("bench:")[0] + "package: {triton: {layout: fused}}\n")
    graphs.write(folder, graphs.layers())
    for name, source, more in (
        ("plain", "model.onnx", ""),
        ("gpu", "model.onnx", ON_A_T4),
        ("broken", "broken.onnx", ""),
    ):
        (folder / f"{name}.yaml").write_text(TENSORS.format(name=name, source=source, more=more))
    (folder / "broken.onnx").write_bytes(b"no model")
    program = quick(folder)
    program.environment |= {"RECIPE_TRITON_VENV": str(environment), "PATH": f"{Path(sys.executable).parent}:/usr/bin"}
    return program


def outcomes(folder, name="results"):
    """Return the state of each part by variant and part, from the file and from the archive, which agree."""
    text = (folder / f"{name}.json").read_text()
    with tarfile.open(folder / f"{name}.tar.gz") as archive:
        packed = json.load(archive.extractfile("recipe-results/results.json"))
    plain = json.loads(text)
    states = {(each["recipe"], each["part"]): each["state"] for each in plain["parts"]}
    assert {(each["recipe"], each["part"]): each["state"] for each in packed["parts"]} == states
    return states, {(each["recipe"], each["part"]): each for each in plain["parts"]}


@pytest.mark.whole("test_a_t4_without_a_server_says_which_parts_ran_on_it")
def test_all_parts_pass_on_a_cpu_and_other_variants_say_why_not(project):
    done = project("prove", "texts.yaml", "gpu.yaml", expect=0)
    states, parts = outcomes(project.folder)
    assert states == {**{("tiny", part): "passed" for part in PARTS}, ("gpu", "all"): "did not run"}
    assert "cannot run here: T4 (sm_75)" in done.stdout
    assert "of 7 parts ran: 6 on CPU" in done.stdout
    assert parts["tiny", "build again"]["text"].startswith("up to date")
    [distance] = parts["tiny", "compare"]["figures"]
    assert distance["requests"] == 6  # three texts over both protocols
    assert distance["cosine"] > 0.9999
    loads = parts["tiny", "load test"]["figures"]
    assert [each["concurrency"] for each in loads] == [1, 8, 64]
    assert all(each["throughput"] > 0 and each["latency"]["p99_ms"] > 0 for each in loads)
    with tarfile.open(project.folder / "results.tar.gz") as archive:
        names = [name.removeprefix("recipe-results/") for name in archive.getnames()]
    assert {"machine.json", "results.json", "tiny-server.log"} <= set(names)
    assert any(name.startswith("records/") for name in names)
    assert not list((project.folder / "build").glob(".serving-*"))


@pytest.mark.whole("test_a_t4_without_a_server_says_which_parts_ran_on_it")
def test_a_build_that_fails_is_one_line_and_the_other_variant_goes_on(project):
    done = project("prove", "broken.yaml", "plain.yaml", "--bundle", "two.tar.gz", expect=1)
    states, parts = outcomes(project.folder, "two")
    assert states["broken", "build"] == "failed"
    assert {states["broken", part] for part in PARTS[1:]} == {"did not run"}
    assert {states["plain", part] for part in PARTS} == {"passed"}
    assert "fetch" in parts["broken", "build"]["text"]
    assert re.search(r"^broken +load +- +did not run: it is not built$", done.stdout, flags=re.MULTILINE)


@pytest.mark.whole("test_a_t4_without_a_server_says_which_parts_ran_on_it")
def test_ctrl_c_keeps_what_is_done_and_writes_the_archive(project):
    words = ("prove", "plain.yaml", "texts.yaml", "--bundle", "some.tar.gz")
    with project.start(*words, stderr=subprocess.PIPE) as process:
        next(line for line in process.stderr if line.startswith("passed  plain  load  "))
        process.send_signal(signal.SIGINT)  # once: a print that is interrupted may write its line again
        shown, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
    states, _ = outcomes(project.folder, "some")
    assert {states["plain", part] for part in PARTS[:3]} == {"passed"}
    assert states["tiny", "all"] == "did not run"
    assert "some.tar.gz: " in shown


@pytest.mark.whole("test_a_t4_without_a_server_says_which_parts_ran_on_it")
def test_the_container_comes_first_where_docker_is(project, tmp_path):
    home = tmp_path / "docker"
    program = Program(project.folder, anew=True)
    path = f"{fake_docker.install(tmp_path / 'bin', home)}:{project.environment['PATH']}"
    program.environment |= project.environment | {"PATH": path, "FAKE_DOCKER": str(home)}
    program("prove", "plain.yaml", "--bundle", str(tmp_path / "docker.tar.gz"), expect=0)
    for left in keeper.SHARED_MEMORY.glob("fake_*"):
        left.unlink()
    states, parts = outcomes(tmp_path, "docker")
    assert set(states.values()) == {"passed"}
    assert "in a container: docker runs nvcr.io/nvidia/tritonserver:25.06-py3" in parts["plain", "load"]["text"]
    assert "run" in [each["words"][0] for each in fake_docker.calls(home)]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["gpu.yaml"], 3, "nothing of the recipes can run here"),
        (["gone.yaml"], 2, "gone.yaml"),
        (["plain.yaml", "--bundle", "model.onnx/results.tar.gz"], 2, "cannot be written"),
    ],
)
def test_what_cannot_begin_builds_nothing(tmp_path, words, code, says):
    graphs.write(tmp_path, graphs.layers())
    for name, more in (("plain", ""), ("gpu", ON_A_T4)):
        (tmp_path / f"{name}.yaml").write_text(TENSORS.format(name=name, source="model.onnx", more=more))
    done = Program(tmp_path)("prove", *words, "--cache", str(tmp_path / "cache"), expect=code)
    assert says in done.stderr
    assert not list(tmp_path.glob("cache/records/*"))


@pytest.fixture(scope="module")
def t4(tmp_path_factory):
    """A machine with a fake T4 and TensorRT, a recipe that it can run, and one for another version of TensorRT."""
    folder = gpu_project.project_in(tmp_path_factory.mktemp("t4") / "project")
    recipe = (folder / "recipes" / "net0.yaml").read_text()
    (folder / "recipes" / "net1.yaml").write_text(recipe.replace("10.x", "10.13.0.35").replace("net0", "net1"))
    machine = FakeT4(folder, folder.parent / "machine", tensorrt="10.11.0.33")
    machine.environment["PATH"] = f"{folder.parent / 'machine' / 'bin'}:/usr/bin:/bin"  # without docker
    return machine


def test_a_t4_without_a_server_says_which_parts_ran_on_it(t4):
    done = t4("prove", "recipes/net0.yaml", "recipes/net1.yaml", expect=0)
    states, parts = outcomes(t4.folder)
    assert [states["net0", part] for part in PARTS] == ["passed", "passed", *["did not run"] * 4]
    assert {parts["net0", part]["device"] for part in PARTS[:3]} == {"Tesla T4"}
    assert "there is no Triton server for the models" in parts["net0", "load"]["text"]
    assert "tensorrt 10.11.0.33 instead of 10.13.0.35" in parts["net1", "all"]["text"]
    assert "of 7 parts ran: 2 on Tesla T4" in done.stdout
    assert "models on a GPU:" in done.stdout


@pytest.mark.whole("test_a_t4_without_a_server_says_which_parts_ran_on_it")
def test_a_server_that_cannot_load_the_engine_fails_that_part_alone(t4, environment, tmp_path):
    """The fake docker runs the pip-installed Triton, which has no backend for engines."""
    home = tmp_path / "docker"
    before = dict(t4.environment)
    t4.environment |= {
        "PATH": f"{fake_docker.install(tmp_path / 'bin', home)}:{before['PATH']}", "FAKE_DOCKER": str(home),
        "RECIPE_TRITON_VENV": str(environment),
    }  # fmt: skip
    try:
        done = t4("prove", "recipes/net0.yaml", expect=1)
    finally:
        t4.environment.clear()
        t4.environment.update(before)
    states, _ = outcomes(t4.folder)
    assert [states["net0", part] for part in PARTS] == ["passed", "passed", "failed", *["did not run"] * 3]
    run = next(each["words"] for each in fake_docker.calls(home) if each["words"][0] == "run")
    assert run[run.index("--gpus") + 1] == "all"
    assert "no server has loaded it" in done.stdout
    assert os.path.getsize(t4.folder / "results.tar.gz") > 0
