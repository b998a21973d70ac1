"""The page of a search shows each trial once in the picture and once in the table, and needs no script."""

import json
import re
from dataclasses import replace

import browsers
import pytest
import searches
from browsers import Visit
from report.page.test_browser import GEOMETRY
from report_pages import Numbers, resolved

from engine.errors import UsageError
from engine.report.page import search


def wide(text):
    """Return the wide picture of a page."""
    return re.search(r'<div class="when-wide">(.*?)</svg>', text, re.DOTALL)[1]


def test_every_trial_with_an_accuracy_and_a_latency_is_a_point_that_leads_to_its_row():
    result = searches.result(40, failed=3)
    text = search.html(result, "recipe 0")
    numbers = [int(each) for each in re.findall(r'<a href="#trial-(\d+)"', wide(text))]
    assert sorted(numbers) == list(range(1, 38))
    assert [int(each) for each in re.findall(r'<span id="trial-(\d+)"', text)] == list(range(1, 41))
    assert "3 trials without an accuracy or a latency" in text
    assert "the operator &lt;Foo&gt; &amp; &#39;Bar&#39; is unknown" in text


def test_the_chosen_trial_and_the_recipe_as_written_are_marked_and_the_front_is_filled():
    result = searches.result(40)
    picture = wide(search.html(result, "recipe 0"))
    assert len(re.findall(r'class="dot ours"', picture)) == len(result.front) > 1
    assert re.findall(r'class="ring ([^"]*)"', picture).count("ours") == 1
    assert (">chosen: " in picture, ">as written<" in picture) == (True, True)
    area = {each.size: None for each in result.trials}
    assert len(set(re.findall(r' r="([\d.]+)" class="dot', picture))) == len(area) > 2


def test_numbers_of_the_table_are_those_of_the_json():
    result = searches.result(12)
    shown = {"tune": json.loads(json.dumps(result.to_json()))}
    marked = Numbers(search.html(result, "recipe 0")).marked
    assert len(marked) > 12 * 6
    assert [each for each in marked if resolved(shown, each[0]) != each[1]] == []


@pytest.mark.parametrize(("count", "failed"), [(0, 0), (2, 2)])
def test_without_any_figure_there_is_no_picture_and_the_reason_is_said(count, failed):
    text = search.html(searches.result(count, failed=failed, why=""), "recipe 0")
    assert ("<figure>" in text, "No trial is chosen." in text) == (False, True)
    assert "there is no picture" in text


def test_one_trial_is_a_picture_of_one_point():
    picture = wide(search.html(searches.result(1), "recipe 0"))
    assert (picture.count("<a href"), "chosen: as written" in picture) == (1, True)


def test_throughput_is_better_to_the_right():
    result = searches.result(20, figure="throughput")
    picture = wide(search.html(result, "recipe 0"))
    line = re.search(r'<path d="M ([^"]*)" class="line ours"', picture)[1]
    places = [tuple(map(float, each.split())) for each in line.split(" L ")]
    assert places == sorted(places, key=lambda each: -each[0])
    assert "rows a second" in picture


def test_a_trial_that_was_cut_or_misses_a_bound_is_off_the_line():
    result = searches.result(12)
    quick = replace(result.trials[5], figures={"p95_ms": 0.5}, state="cut")
    trials = tuple(quick if each.number == quick.number else each for each in result.trials)
    lines = [
        re.search(r'<path d="M ([^"]*)" class="line', wide(search.html(replace(result, trials=each), "")))[1]
        for each in (trials, tuple(replace(each, state="validated") for each in trials))
    ]
    assert lines[0] != lines[1]


def test_a_page_replaces_an_earlier_one_and_no_folder(tmp_path):
    path = tmp_path / "search.html"
    for count in (1, 3):
        search.write(searches.result(count), path)
    assert path.read_text().count('id="trial-') == 3
    with pytest.raises(UsageError, match="is no file"):
        search.write(searches.result(1), tmp_path)


@pytest.fixture(scope="module")
def browser():
    yield from browsers.started()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
@pytest.mark.parametrize("count", [1, 12, 40])
def test_no_label_covers_another_one_and_the_page_can_be_read_by_everyone(browser, tmp_path, count, width, scheme):
    path = tmp_path / "search.html"
    search.write(searches.result(count, failed=count // 12), path)
    with Visit(browser, path, width=width, scheme=scheme) as visit:
        root = "document.documentElement"
        assert visit.page.evaluate(f"[{root}.scrollWidth, {root}.clientWidth]") == [width, width]
        seen = visit.page.evaluate(GEOMETRY)
        assert (seen["texts"] > 5, seen["faults"]) == (True, [])
        assert (visit.faults(), visit.messages) == ([], [])
        assert visit.requests == [path.as_uri()]
