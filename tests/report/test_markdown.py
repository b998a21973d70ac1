"""Tables in Markdown."""

import pytest

from engine.report import markdown


def test_a_table_has_a_header_a_rule_and_a_row_each():
    assert list(markdown.table(("a", "b"), [("1", "2")], right=[False, True])) == [
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
    assert markdown.escaped(text) == escaped
