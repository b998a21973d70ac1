"""Colours: the option --color and the variables decide; without them a terminal has colours and a pipe has none."""

import io

import pytest

from engine.system import colors


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_has_colours_and_a_pipe_has_none():
    assert colors.paint("failed", "red", Terminal()) == "\033[31mfailed\033[0m"
    assert colors.paint("failed", "red", io.StringIO()) == "failed"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_variable_turns_them_off(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    assert not colors.are_on(Terminal())


@pytest.mark.parametrize(("words", "stream", "on"), [
    (["--color", "always"], io.StringIO(), True), (["--color=never"], Terminal(), False),
    (["--color", "auto"], Terminal(), True), (["--color=auto"], io.StringIO(), False),
])  # fmt: skip
def test_the_option_decides_and_leaves_the_command_line(words, stream, on):
    assert colors.take(["build", *words, "r.yaml"]) == ["build", "r.yaml"]
    assert colors.are_on(stream) is on


def test_a_wrong_value_is_left_for_the_parser():
    assert colors.take(["build", "--color", "blue"]) == ["build", "--color", "blue"]
    assert colors.take(["build", "--color"]) == ["build", "--color"]


def test_an_error_has_colours_in_its_first_word_and_its_hint():
    text = colors.error("error: it is wrong\n  a fact\nhint: mend it", Terminal())
    assert text == "\033[1;31merror:\033[0m it is wrong\n  a fact\n\033[36mhint:\033[0m mend it"
