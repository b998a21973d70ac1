"""Foreign settings in a draft: the words of a command, and fields that take the place of guesses."""

import pytest

from engine.drafts import foreign
from engine.drafts.draft import Draft, SampleFile
from engine.drafts.foreign import Foreign
from engine.errors import UsageError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tool --a=1 b > log 2>&1", ["--a=1", "b"]),
        ("cd x && /usr/bin/tool.exe --a 'b c'", []),
        (r'C:\tools\tool.exe --a="x\y"', [r"--a=x\y"]),
        ("--a=1 --b", ["--a=1", "--b"]),
        ("sudo tool \\\n  --a=1 \\\n  --b", ["--a=1", "--b"]),
    ],
)
def test_words_are_those_behind_the_program_up_to_the_end_of_the_command(text, words):
    if not words:
        with pytest.raises(UsageError, match="no command of tool"):
            foreign.words(text, "tool")
    else:
        assert foreign.words(text, "tool") == words


def test_options_take_their_values_behind_a_blank_or_a_sign():
    every = list(foreign.options(["-m", "a", "--task=b", "out", "--flag"], {"-m": "--model", "--task": "--task"}))
    assert every == [
        ("--model", "a", "-m a"),
        ("--task", "b", "--task=b"),
        ("", "out", "out"),
        ("--flag", "", "--flag"),
    ]


def test_profiles_of_the_other_tool_take_the_place_of_guessed_sizes():
    draft = Draft({"name": "a"}, samples=SampleFile(".npz", b""))
    draft.put("profiles", [{"batch": [1, 8, 32]}], "guesses")
    draft.put("bench.shapes", [{"batch": 8}], "guesses")
    draft.put("validate", {}, "random")
    settings = Foreign("tool")
    settings.put("profiles", [{"x": ["1x3", "2x3", "4x3"]}], "--shapes")
    settings.leave("--other", "no field")
    settings.add_to(draft)
    assert draft.samples is None
    assert draft.fields == {"name": "a", "profiles": [{"x": ["1x3", "2x3", "4x3"]}], "bench": {}}
    assert draft.comments == {"profiles": "tool: --shapes"}
    assert [str(each) for each in draft.unmapped] == ["--other: no field"]
