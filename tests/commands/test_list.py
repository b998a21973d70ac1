"""`recipe list`: the recipes of a project with their states, without a build and without packages of ML."""

import json

import graphs
import onnx
import pytest
from program import Program

RECIPE = "name: NAME\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n"
MISSED = "validate: {cosine: {at_least: 0.5}}\nbench: {shapes: [{batch: 1, budget: {p95_ms: 0.000001}}]}\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project in which one recipe is built, one failed, one was never built, and others are no recipes of its own."""
    folder = tmp_path_factory.mktemp("project")
    program = small(folder)
    (folder / "r.yaml").unlink()
    for name in ("built", "edited", "new"):
        (folder / f"{name}.yaml").write_text(RECIPE.replace("NAME", name))
    (folder / "missed.yaml").write_text(RECIPE.replace("NAME", "missed") + MISSED)
    (folder / "sub").mkdir()
    (folder / "sub" / "wrong.yaml").write_text("name: wrong\nmodel: {source: ../net.onnx}\nprofile: []\n")
    (folder / "base.yaml").write_text("abstract: true\nmodel: {source: net.onnx}\n")
    (folder / "compose.yaml").write_text("services: {}\n")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "old.yaml").write_text(RECIPE)
    program("build", "built.yaml", expect=0)
    program("build", "edited.yaml", expect=0)
    program("build", "missed.yaml", expect=4)
    edited = folder / "edited.yaml"
    edited.write_text(edited.read_text().replace("[1, 2, 4]", "[1, 2, 8]"))
    return program


def small(folder):
    """Make a project with one recipe."""
    (folder / "pyproject.toml").touch()
    (folder / "r.yaml").write_text(RECIPE.replace("NAME", "r"))
    onnx.save(graphs.layers(), folder / "net.onnx")
    return Program(folder)


@pytest.mark.slow
def test_each_recipe_of_the_project_has_its_state(project):
    listed = {each["recipe"]: each for each in json.loads(project("list", "--json", expect=0).stdout)}
    assert {name: each["state"] for name, each in listed.items()} == {
        "built.yaml": "up to date",
        "edited.yaml": "would rebuild",
        "missed.yaml": "failed",
        "new.yaml": "never built",
        "sub/wrong.yaml": "wrong",
    }
    assert listed["edited.yaml"]["names"] == ["edited"]
    assert 0 < listed["edited.yaml"]["rebuild"] <= listed["edited.yaml"]["jobs"]
    assert listed["sub/wrong.yaml"]["why"].startswith("sub/wrong.yaml:3:1: unknown field `profile`")
    lines = project("list", expect=0).stdout.splitlines()
    assert lines[0].split() == ["built.yaml", "up", "to", "date"]
    assert any("would rebuild" in line and "jobs" in line for line in lines)
    assert any(line.startswith("missed.yaml") and "failed: 1 of" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.slow
def test_a_recipe_whose_jobs_are_stored_and_were_not_built_last_is_cached(project):
    recipe = project.folder / "edited.yaml"
    edited = recipe.read_text()
    project("build", "edited.yaml", expect=0)
    recipe.write_text(edited.replace("[1, 2, 8]", "[1, 2, 4]"))
    assert "cached: a build delivers it without work" in project("list", expect=0).stdout


@pytest.mark.slow
def test_no_package_of_ml_is_imported(project):
    assert not {"torch", "transformers", "onnxruntime", "tokenizers", "tritonclient"} & project.imports("list")


@pytest.mark.slow
def test_a_recipe_that_did_not_change_is_answered_by_its_snapshot(tmp_path):
    one = small(tmp_path)
    one("build", "r.yaml", expect=0)
    assert not {"pydantic", "networkx", "onnx", "numpy"} & one.imports("list", "--json")
    assert "up to date" in one("list", expect=0).stdout


def test_a_project_without_a_recipe_says_how_to_begin_and_makes_no_store(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    assert "recipe new MODEL" in Program(tmp_path)("list", expect=0).stdout
    assert small(tmp_path)("list", expect=0).stdout == "r.yaml  never built\n"
    assert not (tmp_path / "cache").exists()
