"""The page of `recipe report`, without a browser: its numbers, its texts, its size."""

import re

import pytest
from report_pages import Numbers, rendered, resolved

MOST = 1_500_000
"""The most bytes of a page."""


@pytest.fixture(scope="module")
def one():
    return rendered()


@pytest.fixture(scope="module")
def many():
    return rendered(200)


@pytest.mark.parametrize("name", ["one", "many"])
def test_every_number_is_that_of_the_json(name, request):
    text, shown = request.getfixturevalue(name)
    marked = Numbers(text).marked
    assert len(marked) > 100
    assert [path for path, value, _, _ in marked if resolved(shown, path) != value] == []
    for path, value, formula, words in marked:
        if formula is not None:
            factor, batch = re.fullmatch(r"(\d+)\*(\d+)/x", formula).groups()
            assert float(words.replace(",", "")) == pytest.approx(int(factor) * int(batch) / value, abs=0.5), path
        elif path.endswith("_ms"):
            assert float(words.replace(",", "")) == pytest.approx(value, rel=5e-4, abs=5.1e-4), path


def test_every_number_in_a_table_of_latencies_is_marked(one):
    text, _ = one
    cells = re.findall(r'<td class="r">(.*?)</td>', text, re.DOTALL)
    loose = [cell for cell in cells if re.search(r"\d", re.sub(r"<span.*?</span>", "", cell, flags=re.DOTALL))]
    assert all(cell in ("1", "8", "32") for cell in loose), loose  # the sizes of batches


def test_nothing_is_loaded_from_elsewhere_and_results_stand_before_the_plan(one, many):
    for (text, _), results in ((one, ">Latency<"), (many, 'id="variants"')):
        assert text.index(results) < text.index(">The plan<")
        assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", text)
        assert "@import" not in text
        assert "url(" not in text
        assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text


def test_a_page_of_one_variant_says_what_a_reader_looks_for_and_texts_are_never_markup(one):
    text, _ = one
    for words in (
        "The plan", "Latency", "Throughput against batch", "Accuracy", "Precision, fusion and size", "History",
        "Provenance", "other answers in:", "line 9", "onnxruntime-int8 (ours)", "2 Conv", "&lt;v&gt;",
        "left out: &lt;1&gt; &amp; a row",
    ):  # fmt: skip
        assert words in text, words
    assert "<v>" not in text
    assert 'id="filter"' not in text  # there is no table of variants
    assert len(text.encode()) < 100_000


def test_many_variants_are_one_table_with_a_front_and_a_small_page(many):
    text, _ = many
    assert len(text.encode()) < MOST
    links, names = (re.findall(pattern, text) for pattern in (r'<th scope="row"><a href="#(.*?)">&lt;v&gt;-',
                                                              r'<th scope="row">&lt;v&gt;-'))  # fmt: skip
    assert len(links) + len(names) == 200
    assert links
    assert [anchor for anchor in links if f'<details class="variant" id="{anchor}">' not in text] == []
    assert "further variants are left out" in text
    assert text.count(">front<") > 1


def test_the_table_of_variants_has_the_axes_and_no_empty_column():
    text, _ = rendered(14, measured=0)
    head = text.partition('id="variants"')[2].partition("</thead>")[0]
    titles = [re.sub("<.*?>", "", each).strip() for each in re.findall("<th.*?</th>", head, re.DOTALL)]
    assert titles == ["recipe", "n", "device", "precision", "state"]


def test_a_missing_picture_of_variants_has_its_reason():
    for count, measured, expected in (
        (1, 1, ["A picture of accuracy against latency compares variants, and here is one variant only"]),
        (3, 0, ["There is no picture of accuracy against latency: no variant has both a latency and a cosine yet"]),
        (3, 1, ["There is no picture of accuracy against latency: 1 of 3 have"]),
        (3, 2, ["The picture does not show all variants: 2 of 3 have"]),
        (3, 3, []),
    ):
        text, _ = rendered(count, measured=measured)
        reasons = re.findall(r'<p class="note">([^<]*picture of accuracy[^<]*|The picture[^<]*all[^<]*)</p>', text)
        beginnings = [reason[: len(words)] for reason, words in zip(reasons, expected, strict=True)]
        assert beginnings == expected
