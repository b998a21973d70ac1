"""The writer of recipes: every text stays a text, and comments stay comments."""

import pytest
import yaml

from engine.drafts import writer
from engine.drafts.draft import Draft


@pytest.mark.parametrize("value", ["yes", "1e3", "0123", "a: b", "#x", "null", "hf:a/b", "é", "a\nb", "- x", ""])
def test_a_text_stays_a_text(value):
    draft = Draft({"name": value}, [value], {"name": value})
    assert yaml.safe_load(writer.text(draft)) == {"name": value}


def test_what_no_field_stands_for_is_in_a_comment():
    draft = Draft({"name": "it"})
    draft.leave("--best", "a search that no build repeats")
    assert "# - --best: a search that no build repeats\n" in writer.text(draft)
