"""Tables for people: aligned, and never wrapped or cut."""

import pytest

from engine.report import grid

ROWS = [("name", "size"), ("minilm", "22.8 MB"), ("a [bold]word[/] :smile:", "1.5 kB")]


def test_columns_are_aligned_and_no_line_ends_in_blanks():
    assert grid.lines(ROWS, [grid.LEFT, grid.RIGHT]) == [
        "name                        size",
        "minilm                   22.8 MB",
        "a [bold]word[/] :smile:   1.5 kB",
    ]
    assert grid.lines([("built", ""), ("", "  why")], [grid.Column(width=8)], gap=1, indent=2) == [
        "  built",
        "             why",
    ]


def test_a_row_may_have_fewer_cells_and_a_table_no_rows():
    assert grid.lines([("a",), ("b", "c")]) == ["a", "b  c"]
    assert grid.lines([]) == []


@pytest.mark.parametrize("variables", [{"COLUMNS": "20"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}])
def test_neither_a_narrow_terminal_nor_colours_change_a_line(variables, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    [line] = grid.lines([("a" * 10_000, "the last word")])
    assert line == f"{'a' * 10_000}  the last word"
