"""Options of tritonserver behind `--`."""

import pytest

from engine import commands
from engine.errors import UsageError
from engine.server import further
from engine.server.installation import Place, options
from engine.server.needs import Needs
from engine.server.ports import Ports


def test_what_stands_behind_two_dashes_goes_to_the_server(tmp_path):
    parsed = commands.parse(["serve", "r.yaml", "--http-port", "9000", "--", "--log-verbose=1", "--rate-limit=off"])
    assert [str(each) for each in parsed.recipes] == ["r.yaml"]
    words = further.check(parsed.further)
    place = Place(tmp_path, Ports(8000, 8001, 8002), tmp_path, "recipe_ab12", Needs(), words)
    assert options(place, "/models", place.ports)[-2:] == ["--log-verbose=1", "--rate-limit=off"]


def test_other_commands_keep_the_usual_meaning_of_two_dashes():
    parsed = commands.parse(["check", "--", "-odd.yaml"])
    assert [str(each) for each in parsed.recipes] == ["-odd.yaml"]
    assert parsed.further == ()


@pytest.mark.parametrize("word", ["--http-port=1", "--model-repository=/x", "--id=other", "--log-file"])
def test_an_option_that_recipe_sets_is_refused_with_what_to_do(word):
    with pytest.raises(UsageError, match="recipe sets --") as caught:
        further.check([word])
    assert caught.value.hint


def test_a_word_that_is_no_option_is_refused():
    with pytest.raises(UsageError, match="is none"):
        further.check(["other.yaml"])
