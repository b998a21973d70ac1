"""A recipe under another name: `why`, `diff` and `history` name the row that changed, and the recipe before."""

import json
import shutil

import graphs
import onnx
import pytest
from program import Program

RECIPE = "name: net\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("renamed") / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "old.yaml").write_text(RECIPE)
    (folder / "link.yaml").symlink_to("old.yaml")
    onnx.save(graphs.layers(), folder / "net.onnx")
    program = Program(folder)
    assert set(program.states("link.yaml").values()) == {"built"}
    return folder


@pytest.fixture
def project(built, tmp_path):
    shutil.copytree(built, tmp_path / "copy", copy_function=shutil.copy2, symlinks=True)
    return Program(tmp_path / "copy")


def renamed(folder):
    """Rename the file of the recipe, and edit a row of it."""
    (folder / "link.yaml").unlink()
    (folder / "old.yaml").unlink()
    (folder / "new.yaml").write_text(RECIPE.replace("[1, 2, 4]", "[1, 3, 4]"))
    return "new.yaml", "link.yaml"


def retargeted(folder):
    """Let the link lead to a copy of the recipe with another row."""
    (folder / "second.yaml").write_text(RECIPE.replace("[1, 2, 4]", "[1, 3, 4]"))
    (folder / "link.yaml").unlink()
    (folder / "link.yaml").symlink_to("second.yaml")
    return "link.yaml", "link.yaml"


@pytest.mark.parametrize("change", [renamed, retargeted])
@pytest.mark.sample(1)
def test_the_row_that_changed_is_named_and_the_recipe_that_was_built(project, change):
    path, before = change(project.folder)
    findings = project.why(path)
    [first] = [each for each in findings.values() if each["state"] == "stale"]
    assert [each["row"] for each in first["changes"]] == ["options.profiles"]
    assert "new" not in {each["state"] for each in findings.values()}
    others = {each["compared_with"] for each in findings.values() if "compared_with" in each}
    assert others == ({before} if change is renamed else set())
    if change is renamed:
        assert "net: compared with the last build of link.yaml" in project("why", path).stdout
    difference = json.loads(project("diff", path, "--json").stdout)
    assert difference["old"] == f"last build of {before}"
    [variant] = difference["variants"]
    rows = {
        each["job"]: [row["row"] for row in each["rows"]] for each in variant["jobs"] if each["change"] == "changed"
    }
    assert rows[first["job"]] == ["options.profiles"]
    project("build", path, expect=0)
    [history] = json.loads(project("history", path, "--json").stdout)
    build = history["builds"][-1]
    assert {run["job"]: [each["row"] for each in run["changes"]] for run in build["runs"] if run["changes"]} == rows
    assert build["compared_with"] == (before if change is renamed else "")
    assert "compared_with" not in str(project.why(path))


def test_a_recipe_that_is_only_renamed_is_cached_and_has_a_history_from_its_first_build(project):
    (project.folder / "old.yaml").rename(project.folder / "new.yaml")
    assert {each["state"] for each in project.why("new.yaml").values()} == {"cached"}
    assert set(project.states("new.yaml").values()) == {"cached"}
    [history] = json.loads(project("history", "new.yaml", "--json").stdout)
    assert len(history["builds"]) == 1


def test_a_copy_beside_its_original_is_new(project):
    (project.folder / "copy.yaml").write_text(RECIPE.replace("[1, 2, 4]", "[1, 3, 4]"))
    assert "new" in {each["state"] for each in project.why("copy.yaml").values()}


def test_a_recipe_of_another_name_and_another_model_is_new(project):
    renamed(project.folder)
    onnx.save(graphs.layers(features=32), project.folder / "other.onnx")
    (project.folder / "other.yaml").write_text(RECIPE.replace("net", "other"))
    assert "stale" not in {each["state"] for each in project.why("other.yaml").values()}
