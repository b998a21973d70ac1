"""The pictures of latencies, throughput, accuracy and builds."""

import re

import pytest

from engine.report.page import charts
from engine.report.page.charts import Box, VariantPoint
from engine.report.page.values import Value


def point(name, latency, accuracy):
    return VariantPoint(name, latency, accuracy, name, name)


def row(runtime, p50, *, ours):
    fields = {"runtime": runtime, "ours": ours, "p50_ms": p50, "p95_ms": p50 * 2, "p99_ms": p50 * 3,
              "intervals": {"p50_ms": [p50 * 0.9, p50 * 1.1]}}  # fmt: skip
    return Value(fields, "show.0.bench.0")


@pytest.mark.parametrize(
    ("points", "names"),
    [
        ([("a", 1, 0.9), ("b", 2, 0.99), ("c", 3, 0.95)], "ab"),
        ([("a", 1, 0.9), ("b", 1, 0.95)], "b"),
        ([("a", 2, 0.9), ("b", 1, 0.9)], "b"),
        ([("a", 1, 0.9)], "a"),
        ([], ""),
    ],
)
def test_the_front_has_what_no_other_variant_beats(points, names):
    assert "".join(each.name for each in charts.front([point(*each) for each in points])) == names


def test_a_scatter_links_the_points_of_the_front_and_points_at_one_place_share_a_name():
    drawn = str(charts.scatter([point("a", 1, 0.9), point("b", 2, 0.8), point("<c>", 3, 0.99)], "all"))
    assert drawn.count("<a ") == 2
    assert drawn.count("<circle") == 3
    assert "&lt;c&gt;: p50 in ms 3, cosine 0.9900" in drawn
    drawn = str(charts.scatter([point("a", 1, 0.9), point("b", 2, 0.99), point("c", 2, 0.99)], "all"))
    assert re.findall(r'class="label[^"]*">([^<]*)<', drawn) == ["a", "b and 1 more"]


def test_latencies_have_a_line_for_each_runtime_with_its_median():
    drawn = str(charts.latencies([row("ours", 2.0, ours=True), row("theirs", 80.0, ours=False)], "all"))
    assert drawn.count('class="dot ') == 2
    assert '<tspan class="n" data-path="show.0.bench.0.p50_ms" data-value="80.0">80.000</tspan>' in drawn
    old = Value({**row("ours", 2.0, ours=True).raw, "intervals": {}}, "show.0.bench.0")
    assert str(charts.latencies([old], "all")).count('class="dot ') == 1


def test_throughput_and_builds_have_a_line_for_each_name():
    lines = {name: [(1, Value(p50, "p")), (8, Value(p50 * 4, "p"))] for name, p50 in (("a", 1.0), ("b", 2.0))}
    assert str(charts.throughput(lines, "all")).count('class="line ') == 2
    latency = Value({"p50_ms": 2.0, "interval": [1.9, 2.1]}, "history.0")
    assert str(charts.builds({"batch 1": [(1.0, latency), (2.0, latency)]}, "all")).count('class="line ') == 1


AREA = Box(0, 0, 400, 300)


@pytest.mark.parametrize("count", [1, 2, 12])
def test_each_point_of_a_crowd_has_a_name_and_no_name_covers_another(count):
    names = [f"name-{number}" for number in range(count)]
    drawn = "".join(charts._labels([(200, 150)] * count, names, AREA))
    places = re.findall(r'<text x="([\d.-]+)" y="([\d.-]+)" class="(label[^"]*)">', drawn)
    assert len(set(places)) == len(places) == count


def test_a_long_name_is_cut_in_its_middle_and_one_without_room_left_out():
    assert charts._labels([(5, 5)], ["a name"], Box(0, 0, 10, 10)) == []
    assert re.search(r">a+…a+<", "".join(charts._labels([(20, 150)], ["a" * 100], AREA)))


def test_boxes_cover_and_hold_others():
    assert AREA.holds(Box(1, 1, 2, 2))
    assert not AREA.holds(Box(399, 1, 401, 2))
    assert Box(0, 0, 2, 2).covers(Box(1, 1, 3, 3))
    assert not Box(0, 0, 2, 2).covers(Box(2, 0, 3, 3))
