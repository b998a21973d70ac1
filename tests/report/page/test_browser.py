"""The page of `recipe report` in a real browser: wide and narrow, light and dark, by mouse, keyboard and printer."""

import browsers
import pytest
from browsers import Visit
from report_pages import rendered, resolved

SHOWN = "[...document.querySelectorAll('[data-path]')].map(each => [each.dataset.path, JSON.parse(each.dataset.value)])"


GEOMETRY = """
(() => {
  const faults = [];
  const inside = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
    && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
    && one.top < other.bottom - 3 && other.top < one.bottom - 3;
  const area = (element) => element.getBoundingClientRect();
  const pictures = [...document.querySelectorAll("svg")].filter((each) => area(each).width);
  let texts = 0;
  for (const picture of pictures) {
    for (const text of picture.querySelectorAll("text")) {
      texts += 1;
      const box = text.parentElement.querySelector(":scope > rect.job") || picture;
      if (!inside(area(text), area(box))) faults.push(text.textContent);
    }
    const labels = [...picture.querySelectorAll("text.label")];
    labels.forEach((one, number) => labels.slice(number + 1).forEach((other) => {
      if (meet(area(one), area(other))) faults.push(`${one.textContent} covers ${other.textContent}`);
    }));
  }
  const scrolling = [...document.querySelectorAll("*")].filter((each) => each.scrollWidth > each.clientWidth
    && ["auto", "scroll"].includes(getComputedStyle(each).overflowX) && !each.querySelector("table"));
  return {texts, faults, scrolling_pictures: scrolling.map((each) => each.ariaLabel)};
})()
"""
"""The texts of pictures that leave their boxes or cover each other, and what scrolls sideways without a table in it."""


@pytest.fixture(scope="module")
def browser():
    yield from browsers.started()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of one, a few and many variants, each with the JSON that its numbers come from."""
    folder = tmp_path_factory.mktemp("pages")
    written = {}
    for count, measured in ((1, 1), (3, 3), (14, 14), (200, 200), (1, 0), (14, 0), (14, 1), (14, 12)):
        text, shown = rendered(count, measured=measured)
        path = folder / f"{count}-{measured}.html"
        path.write_text(text, "utf-8")
        written[count if count == measured else (count, measured)] = path, shown
    return written


@pytest.mark.parametrize("width", [390, 1280, 1920])
@pytest.mark.parametrize("kind", [1, 14, (1, 0), (14, 0), (14, 1), (14, 12)])
def test_texts_of_pictures_lie_inside_of_their_boxes_and_only_tables_scroll_sideways(browser, pages, kind, width):
    with Visit(browser, pages[kind][0], width=width) as visit:
        visit.open_everything()
        root = "document.documentElement"
        assert visit.page.evaluate(f"[{root}.scrollWidth, {root}.clientWidth]") == [width, width]
        seen = visit.page.evaluate(GEOMETRY)
        assert seen["texts"] > 5 or width == 390  # a narrow page without figures has no picture
        assert seen["faults"] == []
        if width == 390:
            assert seen["scrolling_pictures"] == []
        assert visit.messages == []


def test_measures_are_explained_where_they_stand(browser, pages):
    with Visit(browser, pages[1][0], width=390, touch=True) as visit:
        words = visit.page.locator("#variant-0 details.words").first
        words.get_by_text("What the measures say").tap()
        for measure in ("p50 ms", "p95 ms", "p99 ms", "noise", "speed-up"):
            assert words.locator("dt").get_by_text(measure, exact=True).is_visible()
        every = visit.page.locator("details.words dt").all_text_contents()
        assert {"cosine", "agreement"} <= set(every)


@pytest.mark.parametrize(
    ("count", "width", "scheme"), [(1, 1920, "dark"), (1, 360, "light"), (3, 1920, "light"), (3, 360, "dark")]
)
def test_a_page_is_usable_and_asks_for_nothing(browser, pages, count, width, scheme):
    path, shown = pages[count]
    with Visit(browser, path, width=width, scheme=scheme) as visit:
        visit.open_everything()
        assert visit.messages == []
        assert [url for url in visit.requests if url != path.as_uri() and not url.startswith("data:")] == []
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
        for picture in visit.page.locator(".when-wide svg, .when-narrow svg").filter(visible=True).all():
            box = picture.bounding_box()
            assert box["x"] + box["width"] <= width, "a chart is cut off"
        charts = visit.page.locator(".when-wide, .when-narrow")
        assert charts.filter(visible=True).count() * 2 == charts.count() > 0, "each chart is shown once"
        assert visit.faults() == []
        numbers = visit.page.evaluate(SHOWN)
        assert len(numbers) > 50
        assert [place for place, value in numbers if resolved(shown, place) != value] == []
        assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == {
            "light": "rgb(255, 255, 255)", "dark": "rgb(15, 19, 24)",
        }[scheme]  # fmt: skip


def first_cells(visit, column):
    rows = "[...document.querySelectorAll('#variants tbody tr:not([hidden])')]"
    return visit.page.evaluate(f"{rows}.map(row => row.cells[{column}].textContent.trim())")


def test_two_hundred_variants_are_sorted_and_filtered_by_keyboard(browser, pages):
    path, shown = pages[200]
    with Visit(browser, path, width=1280) as visit:
        page = visit.page
        header = page.get_by_role("columnheader", name="p50 ms")
        header.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert header.get_attribute("aria-sort") == "ascending"
        values = sorted(each["bench"][0]["p50_ms"] for each in shown["show"])
        assert first_cells(visit, 8) == [f"{value:.3f}" for value in values]
        page.keyboard.press("Enter")
        assert header.get_attribute("aria-sort") == "descending"
        assert first_cells(visit, 8) == [f"{value:.3f}" for value in reversed(values)]
        page.get_by_label("Show only rows with these words").fill("<v>-7 INT8")
        assert set(first_cells(visit, 0)) == {f"<v>-{number}" for number in (7, *range(70, 80))}
        assert page.locator("#rows").text_content() == "11 of 200 rows"
        assert visit.messages == []


def test_a_link_in_the_table_opens_the_details_of_its_variant(browser, pages):
    with Visit(browser, pages[3][0], width=1280) as visit:
        details = visit.page.locator("#variant-1")
        assert details.get_attribute("open") is None
        visit.page.get_by_role("link", name="<v>-1", exact=True).click()
        visit.page.wait_for_function("document.getElementById('variant-1').open")


def test_on_paper_everything_is_open(browser, pages):
    with Visit(browser, pages[3][0], width=1280) as visit:
        assert visit.page.pdf().startswith(b"%PDF")
        assert visit.page.evaluate("[...document.querySelectorAll('details')].every(each => each.open)")
        visit.page.emulate_media(media="print")
        assert not visit.page.locator("#filter").is_visible()
