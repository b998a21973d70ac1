"""The texts at the end of a build: every table for few variants, and a screen for many."""

from pathlib import Path

from engine.errors import Exit
from engine.events import Finished
from engine.report.results import results


def finished(count):
    return Finished("built", 1.0, Exit.OK, {f"v{number}": Path("build", f"v{number}") for number in range(count)})


def tables(count):
    return {f"v{number}": f"table of v{number}\n" for number in range(count)}


def test_few_variants_have_all_tables_and_a_line_for_each_package():
    texts = results(finished(2), tables(2))
    assert texts.brief == texts.whole == "table of v0\ntable of v1\nv0 -> build/v0\nv1 -> build/v1\n"
    assert texts.packages == "v0 -> build/v0\nv1 -> build/v1\n"


def test_many_variants_have_the_tables_of_those_that_were_built_and_one_line():
    texts = results(finished(90), tables(90), built={"v3"})
    assert texts.brief.splitlines() == [
        "table of v3",
        "90 packages in build: v0, v1, v2 and 87 more",
        "`recipe show` prints their tables, and -v all of them here",
    ]
    assert len(texts.whole.splitlines()) == 180


def test_many_variants_without_packages_have_no_lines():
    assert results(finished(0), dict.fromkeys(map(str, range(90)), "")).brief == ""
