"""Edits of the program itself, in a copy of its source tree."""

import shutil
from pathlib import Path

import models
import pytest
from program import Program
from tiny_project import MARK, OF_ONNX

ROOT = Path(__file__).parent.parent.parent
PROFILES = "profiles: [{batch: [1, 1, 4], sequence: [1, 16, 32]}]\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A built project with a copy of the program in it; `project` gives each test a copy of all."""
    folder = tmp_path_factory.mktemp("source-tree") / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    shutil.copytree(ROOT / "engine", folder / "src" / "engine")
    models.classifier_with_tokenizer(folder / "model")
    (folder / "r.yaml").write_text(f"name: m\n{OF_ONNX}{PROFILES}")
    _program(folder)("build", "r.yaml", expect=0)
    return folder


def _program(folder):
    program = Program(folder)
    program.environment["PYTHONPATH"] = str(folder / "src")
    return program


@pytest.fixture
def project(built, tmp_path):
    """A built project whose program is a copy that the test may edit, up to date a moment ago."""
    shutil.copytree(built, tmp_path / "copy", copy_function=shutil.copy2)
    program = _program(tmp_path / "copy")
    assert set(program.states("r.yaml").values()) == {"cached"}
    assert "up to date" in program("build", "r.yaml", expect=0).stderr
    return program


@pytest.mark.whole("tests/builder/test_registry.py finds new steps")
def test_a_new_file_in_steps_is_a_new_step_even_after_an_up_to_date_build(project):
    (project.folder / "src" / "engine" / "steps" / "mark.py").write_text(MARK)
    events = project.events("r.yaml", "--to", "fuse")
    needs = {job["job"]: job["needs"] for job in events[0]["jobs"]}
    assert needs["mark"] == ["shape-infer"]
    assert needs["fuse"] == ["mark"]


@pytest.mark.parametrize(
    ("file", "old", "new", "rebuilt"),
    [
        ("kit/triton/served/tokenizer.py", "self", "this", {"package"}),
        ("kit/inputs/texts.txt", "\n", "!\n", {"reference"}),
        ("steps/shape_infer.py", '"""', '"""Anew: ', set()),
    ],
    ids=["code that is shipped", "data that is read", "docstring"],
)
@pytest.mark.sample(1)
def test_an_edit_rebuilds_what_it_reaches(project, file, old, new, rebuilt):
    path = project.folder / "src" / "engine" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if file.endswith("infer.py") else text.replace(old, new))
    announced = {job for job, finding in project.why("r.yaml").items() if finding["state"] == "stale"}
    assert announced == rebuilt
    built = {job for job, state in project.states("r.yaml").items() if state == "built"}
    assert rebuilt <= built <= rebuilt | {"validate"}


@pytest.mark.whole("test_an_edit_rebuilds_what_it_reaches")
def test_the_second_build_in_a_fresh_clone_is_a_no_op(tmp_path):
    """The first build compiles the program: Python then makes a folder beside the modules, which is no change."""
    shutil.copytree(ROOT / "engine", tmp_path / "src" / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pyproject.toml").write_text("")
    models.classifier_with_tokenizer(tmp_path / "model")
    (tmp_path / "r.yaml").write_text(f"name: m\n{OF_ONNX}{PROFILES}")
    program = _program(tmp_path)
    program.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    program("build", "r.yaml", "--to", "fuse", expect=0)
    assert "pydantic" not in program.imports("build", "r.yaml", "--to", "fuse")
