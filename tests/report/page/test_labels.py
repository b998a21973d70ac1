"""Names of points in a picture."""

import re

import pytest

from engine.report.page import labels
from engine.report.page.labels import Box

AREA = Box(0, 0, 400, 300)


@pytest.mark.parametrize("count", [1, 2, 12])
def test_each_point_of_a_crowd_has_a_name_and_no_name_covers_another(count):
    names = [f"name-{number}" for number in range(count)]
    drawn = "".join(labels.drawn([(200, 150)] * count, names, AREA))
    places = re.findall(r'<text x="([\d.-]+)" y="([\d.-]+)" class="(label[^"]*)">', drawn)
    assert len(set(places)) == len(places) == count


def test_a_name_without_room_is_left_out():
    assert labels.drawn([(5, 5)], ["a name"], Box(0, 0, 10, 10)) == []


def test_a_long_name_is_cut_in_its_middle():
    assert re.search(r">a+…a+<", "".join(labels.drawn([(20, 150)], ["a" * 100], AREA)))


def test_boxes_cover_and_hold_others():
    assert AREA.holds(Box(1, 1, 2, 2))
    assert not AREA.holds(Box(399, 1, 401, 2))
    assert Box(0, 0, 2, 2).covers(Box(1, 1, 3, 3))
    assert not Box(0, 0, 2, 2).covers(Box(2, 0, 3, 3))
