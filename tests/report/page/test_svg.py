"""Scales and ticks of pictures."""

import pytest
from markupsafe import Markup

from engine.report.page import svg


@pytest.mark.parametrize(
    ("values", "logarithmic"), [([1.0, 5.0], False), ([1.0, 50.0], True), ([0.0, 50.0], False), ([2.0], False)]
)
def test_a_scale_holds_its_values_with_round_ticks(values, logarithmic):
    scale = svg.scale(values, 100.0, 500.0)
    assert scale.logarithmic is logarithmic
    assert all(100 <= scale(value) <= 500 for value in values)
    assert scale.ticks()
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks())


def test_a_scale_from_zero_starts_there_and_larger_values_stand_further():
    assert svg.scale([300.0, 100.0], 200.0, 0.0, from_zero=True)(0.0) == 200.0
    scale = svg.scale([0.5, 100.0], 0.0, 100.0)
    places = [scale(value) for value in (0.5, 1, 10, 100)]
    assert places == sorted(places)


def test_texts_are_escaped():
    assert svg.text((1, 2), "<b>") == Markup('<text x="1" y="2" class="">&lt;b&gt;</text>')
    assert "&lt;b&gt;" in svg.picture(1, 1, "<b>", [])
