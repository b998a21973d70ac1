"""Forged answers of a whole build: a snapshot and a plan cache that only the check of whose store it is refuses.

Each test has two halves: nothing of the forged file is read in somebody else's store, and the same file answers in
one's own store. So no other check stands between the forged file and the build.
"""

import os
import shutil
import subprocess

import graphs
import onnx
import pytest
from onnx import helper
from program import Program

from engine import snapshot
from engine.builder import plan_cache

POISON = "POISON"
NAMES = ("a", "b")
WORDS = ("build", "a.yaml", "b.yaml")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project of two small models, built by a user with a list of their own."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("")
    ends = [("x", graphs.FLOAT, ["batch", 8])], [("y", graphs.FLOAT, ["batch", 4])]
    graph = graphs.graph([helper.make_node("MatMul", ["x", "w"], ["y"])], *ends, [graphs.weight("w", 8, 4)])
    for name in NAMES:
        onnx.save(graph, folder / f"{name}.onnx")
        (folder / f"{name}.yaml").write_text(
            f"name: {name}\nmodel: {{source: {name}.onnx}}\nprofiles: [{{batch: [1, 2, 4]}}]\n"
        )
    program = Program(folder)
    del program.environment["RECIPE_TRUST_CACHE"]
    program.environment["XDG_STATE_HOME"] = str(folder / "state")
    program(*WORDS, expect=0)
    assert list((folder / "cache" / "snapshots").iterdir())
    return program


@pytest.fixture
def files(project, monkeypatch):
    """The files of the build's snapshot and plan cache, as pairs of path and content."""
    monkeypatch.chdir(project.folder)
    path = snapshot.path_of(WORDS[1:])
    paths = [path, plan_cache.path_beside(path)]
    return [(each, snapshot.read(each)) for each in paths]


def forge(path, content):
    with open(path, "wb") as file:
        file.write(snapshot.sealed(path, content))


def hidden(project):
    """Whether the build refuses the store while the user's list does not have it."""
    state, away = project.folder / "state", project.folder / "away"
    state.rename(away)
    before = {path: path.read_bytes() for path in (project.folder / "cache").rglob("*") if path.is_file()}
    done = project(*WORDS, expect=2)
    assert before == {path: path.read_bytes() for path in (project.folder / "cache").rglob("*") if path.is_file()}
    shutil.rmtree(state, ignore_errors=True)
    away.rename(state)
    assert POISON not in done.stdout + done.stderr
    return "is not yours: nothing in it was read" in done.stderr


def test_a_forged_snapshot_answers_only_in_ones_own_store(project, files):
    path, content = files[0]
    forge(path, {**content, "brief_talk": POISON, "brief_data": POISON})
    assert hidden(project)
    assert POISON in project(*WORDS, expect=0).stdout
    forge(path, content)


def test_a_forged_plan_answers_only_in_ones_own_store(project, files):
    path, content = files[1]
    entries = {name: {**entry, "table": POISON} for name, entry in content["plan"]["entries"].items()}
    forge(path, {**content, "plan": {**content["plan"], "entries": entries}})
    os.utime(project.folder / "a.onnx")
    assert hidden(project)
    assert POISON in project(*WORDS, expect=0).stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_git_pull_puts_over_a_snapshot_is_not_read(project, files):
    path, content = files[0]
    forge(path, {**content, "brief_talk": POISON, "brief_data": POISON})
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*words):
        subprocess.run(["git", *words], cwd=project.folder, env=environment, check=True, capture_output=True)

    git("init", "-q")
    git("add", "-f", os.path.relpath(path))
    done = project(*WORDS, expect=2)
    assert "git tracks files of the store" in done.stderr
    assert os.path.join("snapshots", os.path.basename(path)) in done.stderr
    assert POISON not in done.stdout + done.stderr
    git("rm", "-r", "-q", "--cached", "cache")  # the user knows who made it
    assert POISON in project(*WORDS, expect=0).stdout
