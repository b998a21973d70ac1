"""The draft of a recipe: fields by dotted path."""

import pytest
import yaml

from engine.drafts.draft import Draft, Unmapped, recipe_text


def test_a_field_goes_beside_its_neighbours():
    draft = Draft({"model": {"source": "m"}})
    draft.put("model.task", "fill-mask", "as the config names it")
    assert draft.fields == {"model": {"source": "m", "task": "fill-mask"}}
    assert draft.comments == {"model.task": "as the config names it"}


@pytest.mark.parametrize("value", ["yes", "1e3", "0123", "a: b", "#x", "null", "hf:a/b", "é", "a\nb", "- x", ""])
def test_a_text_stays_a_text(value):
    draft = Draft({"name": value}, [value], {"name": value})
    assert yaml.safe_load(recipe_text(draft)) == {"name": value}


def test_what_no_field_stands_for_is_in_a_comment():
    draft = Draft({"name": "it"}, unmapped=[Unmapped("--best", "a search that no build repeats")])
    assert "# - --best: a search that no build repeats\n" in recipe_text(draft)
