"""The place of a new recipe: a name that a recipe may have, and no file that exists."""

from pathlib import Path

import pytest

from engine.drafts import place
from engine.errors import UsageError


def test_a_name_is_one_that_a_recipe_may_have():
    assert place.name_of("-my model!.v2") == "my-model-.v2"
    assert place.name_of("...") == "model"


def test_a_recipe_goes_into_the_folder_of_recipes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place.recipe_file("it", None) == Path("it.yaml")
    (tmp_path / "recipes").mkdir()
    assert place.recipe_file("it", None) == Path("recipes/it.yaml")
    assert place.recipe_file("it", Path("a/b")) == Path("a/b.yaml")


def test_even_a_dangling_link_is_left_as_it_is(tmp_path):
    (tmp_path / "it.yaml").symlink_to("nowhere")
    with pytest.raises(UsageError, match="left as it is"):
        place.refuse_existing(tmp_path / "it.yaml")
