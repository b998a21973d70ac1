"""Names of a recipe's sources that do not depend on the project's place, and recipes whose files are missing."""

import pytest

from engine.errors import RecipeError
from engine.recipe.load import load

REAL = "hf:acme/tiny"


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "recipes" / "deep").mkdir(parents=True)
    (root / "pyproject.toml").write_text("")
    for folder in (root / "model", root / "recipes" / "model", tmp_path / "shared" / "model"):
        folder.mkdir(parents=True)
    return root


def name_of(project, source, *, parent=None, **options):
    """Return the portable name of the model of a recipe in `recipes/deep`."""
    head = f"extends: {parent}\n" if parent else f"model: {{source: '{source}'}}\n"
    if parent:
        (project / "recipes" / "deep" / parent).write_text(f"model: {{source: '{source}'}}\n")
    path = project / "recipes" / "deep" / "r.yaml"
    path.write_text(f"name: r\n{head}")
    [loaded] = load(path, allow=[project.parent], **options)
    return loaded.portable_name(loaded.recipe.model.source)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("../../model", "model"),
        ("../model", "recipes/model"),
        ("../deep/../model", "recipes/model"),
        ("../../../shared/model", "../shared/model"),
        (REAL, REAL),
        ("python:package/model", "python:package/model"),
    ],
)
def test_a_path_is_called_by_its_way_from_the_projects_root(project, source, name):
    assert name_of(project, source) == name


def test_a_path_belongs_to_the_file_that_says_it(project):
    assert name_of(project, "model", parent="../base.yaml") == "recipes/model"


def test_a_path_of_the_command_line_belongs_to_the_recipe(project):
    assert name_of(project, REAL, set=["model.source=../model"]) == "recipes/model"


def test_a_link_keeps_its_name(project):
    (project / "current").symlink_to("model")
    assert name_of(project, "../../current") == "current"
    (project / "recipes" / "away").symlink_to(project.parent / "shared" / "model")
    assert name_of(project, "../away") == "recipes/away"


def test_a_full_path_is_a_way_from_the_root_where_it_leads_inside(project):
    assert name_of(project, project / "model") == "model"
    outside = project.parent / "shared" / "model"
    assert name_of(project, outside) == outside.as_posix()


def test_a_project_that_is_reached_through_a_link_calls_its_files_the_same(project, tmp_path):
    (tmp_path / "link").symlink_to(project)
    assert name_of(tmp_path / "link", "../../model") == "model"


def test_what_the_recipe_does_not_name_has_no_name(project):
    name_of(project, "../model")
    [loaded] = load(project / "recipes" / "deep" / "r.yaml")
    assert loaded.portable_name("file:/somewhere") is None


def test_files_may_be_missing_where_they_are_not_looked_at(project):
    with pytest.raises(RecipeError, match="which is not there"):
        name_of(project, "../gone")
    assert name_of(project, "../gone", must_exist=False) == "recipes/gone"
    with pytest.raises(RecipeError, match="leads out of the project"):
        load(project / "recipes" / "deep" / "r.yaml", set=["model.source=../../../../gone"], must_exist=False)
