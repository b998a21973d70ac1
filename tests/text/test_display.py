"""A long text on one short line."""

from engine.text import display


def test_a_text_of_several_lines_comes_on_one_and_a_longer_one_is_cut_and_says_so():
    assert display.one_line(" a\n  b\tc\n", 5) == "a b c"
    assert display.one_line("a b c d e", 8) == "a b c..."


def test_half_a_character_is_a_surrogate():
    assert display.has_surrogates("a\ud83d")
    assert not display.has_surrogates("a\U0001f600")
