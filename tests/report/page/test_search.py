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


def test_every_trial_with_an_accuracy_and_a_time_is_a_point_and_every_trial_is_a_row():
    text = search.html(searches.result(40, failed=3), "recipe 0")
    points = re.findall(r"<title>trial (\d+), ", wide(text))
    assert sorted(map(int, points)) == list(range(1, 38))
    assert [int(each) for each in re.findall(r'<span id="trial-(\d+)"', text)] == list(range(1, 41))
    assert "3 trials without an accuracy or a time" in text
    assert "the operator &lt;Foo&gt; &amp; &#39;Bar&#39; is unknown" in text


def test_the_chosen_trial_has_a_name_in_the_picture_and_leads_to_its_row():
    result = searches.result(40)
    text = search.html(result, "recipe 0")
    assert f'<strong>Chosen: <a href="#trial-{result.chosen}">' in text
    assert re.search(rf'<a href="#trial-{result.chosen}" aria-label="trial {result.chosen}, ', wide(text))
    assert re.findall(r">(chosen[^<]*)<", wide(text)) == ["chosen"]


def test_a_trial_of_the_last_race_is_marked():
    result = replace(searches.result(12), front=())
    others = tuple({1, 2, 3} - {result.chosen})
    text = search.html(replace(result, finals=others), "recipe 0")
    assert text.count(">last race<") == len(others) > 1


def test_numbers_of_the_table_are_those_of_the_json():
    result = searches.result(12)
    shown = {"tune": json.loads(json.dumps(result.to_json()))}
    marked = Numbers(search.html(result, "recipe 0")).marked
    assert len(marked) > 12 * 6
    assert [each for each in marked if resolved(shown, each[0]) != each[1]] == []


@pytest.mark.parametrize(("count", "failed"), [(0, 0), (1, 0), (2, 2)])
def test_a_picture_needs_two_points_and_a_page_needs_none(count, failed):
    text = search.html(searches.result(count, failed=failed, why=""), "recipe 0")
    assert ("<figure>" in text, "No trial is chosen." in text) == (False, count == failed)
    assert ("2 trials without an accuracy or a time" in text) == (failed == 2)


def test_another_accuracy_stands_in_for_a_cosine_that_no_trial_has():
    result = searches.result(3)
    trials = tuple(replace(each, accuracies={"agreement": 0.75}) for each in result.trials)
    picture = wide(search.html(replace(result, trials=trials, finals=()), "recipe 0"))
    assert "agreement 0.7500</title>" in picture


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
