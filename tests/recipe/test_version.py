"""The field `recipe`, which is the version of the recipe language. The field is optional."""

import pytest

from engine.store.heads import subject_of

PLAIN = "name: tiny\nmodel: {source: model}\n"


def test_a_recipe_that_says_its_version_is_the_same_recipe(project):
    with_version = project.one("recipe: 1\n" + PLAIN)
    assert with_version.recipe == project.one(PLAIN).recipe
    assert not [row for row in subject_of(with_version).fields if row.startswith("recipe.recipe")]


def test_parents_and_recipes_with_a_matrix_may_say_it_too(project):
    project.write("recipe: 1\n" + PLAIN, "base.yaml")
    assert project.one("extends: base.yaml\n").recipe.name == "tiny"
    assert project.one("recipe: 1\nextends: base.yaml\n").recipe.name == "tiny"
    assert len(project.load("recipe: 1\nextends: base.yaml\nmatrix: {precision: [fp32, int8]}\n")) == 2


@pytest.mark.parametrize("version", ["2", "0", "true", "'1'", "1.0", "[1]", "{a: 1}", "", "null"])
def test_another_version_is_one_error_at_its_place(project, version):
    error = project.error(f"name: tiny\nrecipe: {version}\nnext_years_field: {{a: b}}\n")
    assert "this program reads version 1 of recipes" in error.what
    assert str(error.position).startswith("recipe.yaml:2:")
    assert error.hint == "write `recipe: 1`, or install the release that reads it"


def test_a_parent_of_another_version_is_refused_in_the_parent(project):
    project.write("recipe: 7\n" + PLAIN, "base.yaml")
    assert str(project.error("extends: base.yaml\n").position) == "base.yaml:1:9"
