"""Places in texts, as errors show them."""

import pytest

from engine.errors import RecipeError
from engine.text.places import Position, Text

TEXT = Text("recipe.yaml", "name: tiny\nmodel:\tnone\x85a: \x07\n")


@pytest.mark.parametrize(("index", "place"), [(0, "recipe.yaml:1:1"), (6, "recipe.yaml:1:7"), (24, "recipe.yaml:3:2")])
def test_a_character_has_a_line_and_a_column(index, place):
    assert str(TEXT.position(index)) == place


def test_a_line_is_shown_in_printable_characters_of_the_same_width():
    assert [Position(TEXT, line, 1).shown_line for line in (1, 2, 3, 9)] == ["name: tiny", "model: none", "a: �", ""]


def test_a_long_line_is_cut_and_a_place_behind_the_cut_shows_none():
    text = Text("r", "x" * 500)
    assert Position(text, 1, 160).shown_line == "x" * 160 + "…"
    assert Position(text, 1, 161).shown_line == ""


def test_an_error_starts_with_its_place_and_points_into_its_line():
    error = RecipeError("this is wrong", Position(TEXT, 1, 7), facts=["a fact"], hint="mend it")
    assert str(error) == "recipe.yaml:1:7: this is wrong\n1 | name: tiny\n          ^\n  a fact\nhint: mend it"
