"""JSON values with their paths, as HTML."""

import pytest
from markupsafe import Markup

from engine.report.page import values
from engine.report.page.values import FILTERS, Value

JSON = {"bench": [{"p50_ms": 1.23456, "ours": True}], "size": 22_837_059, "name": "<b>", "none": None, "zero": 0}
ROOT = Value(JSON, "show.0")


def test_an_inner_value_knows_its_path():
    value = ROOT["bench"][0]["p50_ms"]
    assert (value.raw, value.path, value.number) == (1.23456, "show.0.bench.0.p50_ms", 1.23456)
    assert ROOT["gone"]["deeper"][3].raw is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ms", 1.23456, "1.235"), ("size", 22_837_059, "22.8 MB"), ("percent", 0.5, "50.0%"), ("num", 12345, "12,345"),
        ("num", 0.000123456, "0.0001235"), ("accuracy", 0.99123, "0.9912"), ("times", 3.254, "3.25 x"),
        ("lasting", 53.4, "53 s"), ("memory", 1024**2, "1.0 MiB"),
    ],
)  # fmt: skip
def test_a_number_is_shown_shortly_and_marked_wholly(name, value, text):
    shown = FILTERS[name](Value(value, "show.1.x"))
    assert shown == Markup(f'<span class="n" data-path="show.1.x" data-value="{value!r}">{text}</span>')


def test_what_is_no_number_is_shown_as_nothing_and_rows_a_second_name_their_formula():
    assert [FILTERS["ms"](Value(value, "p")) for value in (None, True, "1", [])] == [""] * 4
    assert values.per_second(Value(2.0, "p"), 8) == Markup(
        '<span class="n" data-path="p" data-value="2.0" data-formula="1000*8/x">4,000</span>'
    )


def test_kinds_of_values_are_told_apart_and_long_ones_are_cut():
    kinds = {name: ROOT[name].kind for name in JSON}
    assert kinds == {"bench": "table", "size": "number", "name": "text", "none": "text", "zero": "number"}
    assert ROOT["bench"].columns == ["p50_ms", "ours"]
    assert bool(ROOT["zero"])
    assert not ROOT["none"]
    many = Value(list(range(150)), "p")
    assert (len(many.shown), many.more) == (100, 50)
    assert Value("x" * 500, "p").text.endswith("x…")
