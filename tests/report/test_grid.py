"""Tables for people: aligned, and as wide as the page."""

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
    assert grid.lines([("a",), ("b", "c")]) == ["a", "b  c"]
    assert grid.lines([]) == []


@pytest.mark.parametrize("variables", [{"COLUMNS": "20"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}])
def test_neither_a_narrow_terminal_nor_colours_change_a_line(variables, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    [line] = grid.lines([("a" * 10_000, "the last word")])
    assert line == f"{'a' * 10_000}  the last word"


WIDE = [("shape", "model", "mean", "p50", "p95"), ("1 x 16", "a model with a long name", "1.000", "2.000", "3.000")]
PLACES = [grid.LEFT, grid.LEFT, grid.RIGHT, grid.RIGHT, grid.RIGHT]


def test_on_a_narrow_page_texts_are_wrapped_then_numbers_stand_in_a_table_of_their_own_with_the_same_names():
    assert grid.lines(WIDE, PLACES, width=45) == [
        "shape   model              mean    p50    p95",
        "1 x 16  a model with a    1.000  2.000  3.000",
        "        long name",
    ]
    lines = grid.lines(WIDE, PLACES, width=40)
    assert max(map(len, lines)) <= 40
    assert [line.split()[:2] for line in lines if line.startswith("1 x")] == [["1", "x"], ["1", "x"]]
    assert sum("shape" in line and "model" in line for line in lines) == 2
    assert all(number in " ".join(lines) for number in ("1.000", "2.000", "3.000"))


def test_spare_columns_are_left_out_first_the_largest_number_before_others():
    columns = [*PLACES[:2], grid.Column(right=True, spare=2), grid.Column(right=True, spare=1), grid.RIGHT]
    assert "mean" not in grid.lines(WIDE, columns, width=46)[0]
    assert "p50" in grid.lines(WIDE, columns, width=46)[0]
    assert "p50" not in grid.lines(WIDE, columns, width=42)[0]


def test_a_table_has_a_header_a_rule_and_a_row_each():
    assert list(grid.markdown_table(("a", "b"), [("1", "2")], right=[False, True])) == [
        "| a | b |",
        "| --- | ---: |",
        "| 1 | 2 |",
    ]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("two\nlines", "two lines"),
        ("<b>*bold*</b> `x` [y](z)", r"\<b>\*bold\*\</b> \`x\` \[y\](z)"),
        ("minilm_cpu.yaml and _this_", r"minilm_cpu.yaml and \_this\_"),
    ],
)
def test_plain_text_has_no_meaning_in_a_cell(text, escaped):
    assert grid.escaped_markdown(text) == escaped
