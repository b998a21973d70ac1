"""The sides of `recipe diff`: recipes as they are, as a commit has them, and last builds."""

import subprocess
from pathlib import Path

import graphs
import pytest

from engine.builder import diff_sides
from engine.builder.diff_sides import SideName
from engine.errors import UsageError

RECIPE = "name: x-${precision}\nmodel: {source: model.onnx}\nmatrix: {precision: [fp32, int8]}\n"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "r.yaml").write_text(RECIPE)
    (folder / ".gitignore").write_text("*.onnx\n")
    graphs.write(folder, graphs.layers(8, 16))

    def git(*words):
        identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, check=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "one")
    return folder


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("r.yaml", SideName(Path("r.yaml"))),
        ("main:a/r.yaml", SideName(Path("a/r.yaml"), "main")),
        ("main~2:r.yaml::x-int8", SideName(Path("r.yaml"), "main~2", "x-int8")),
        ("r.yaml::x-int8", SideName(Path("r.yaml"), "", "x-int8")),
    ],
)
def test_a_place_is_read_from_its_text_and_printed_so(text, place):
    assert SideName.of(text) == place
    assert place.title == text


def test_a_file_with_a_colon_in_its_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a:b.yaml").write_text("")
    assert SideName.of("a:b.yaml") == SideName(Path("a:b.yaml"))


def test_a_commit_is_read_beside_the_present_state_and_the_project_stays_as_it_is(project):
    now = RECIPE.replace("[fp32, int8]", "[fp32]")
    (project / "r.yaml").write_text(now)
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    old = diff_sides.read(SideName(project / "r.yaml", "HEAD"))
    new = diff_sides.read(SideName(project / "r.yaml"))
    assert [each.name for each in old.variants] == ["x-fp32", "x-int8"]
    assert [each.name for each in new.variants] == ["x-fp32"]
    # The model is no file of the commit: it counts as it lies in the work tree, and the keys are equal.
    assert old.variants[0].jobs["fetch"].key is not None
    assert old.variants[0].jobs["fetch"] == new.variants[0].jobs["fetch"]
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_a_variant_is_chosen_by_its_name(project):
    side = diff_sides.read(SideName(project / "r.yaml", variant="x-int8"))
    assert [each.name for each in side.variants] == ["x-int8"]
    with pytest.raises(UsageError, match="has no variant 'x-fp8'"):
        diff_sides.read(SideName(project / "r.yaml", variant="x-fp8"))


def test_a_recipe_that_a_commit_lacks_is_one_error(project):
    (project / "new.yaml").write_text(RECIPE)
    with pytest.raises(UsageError, match="has no file new"):
        diff_sides.read(SideName(project / "new.yaml", "HEAD"))


def test_a_recipe_that_was_never_built_has_no_last_build(project):
    assert diff_sides.since_last_build(SideName(project / "r.yaml"))[0].variants == ()
    assert not (project / "cache").exists()
