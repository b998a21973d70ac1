"""The texts at the end of a build: every table for few variants, and a screen for many."""

from pathlib import Path

from engine.errors import Exit
from engine.events import Finished
from engine.report import plans
from engine.report.results import results


def finished(count):
    return Finished("built", 1.0, Exit.OK, {f"v{number}": Path("build", f"v{number}") for number in range(count)})


def tables(count):
    return {f"v{number}": f"table of v{number}\n" for number in range(count)}


def test_few_variants_have_all_tables_and_many_those_that_were_built():
    texts = results(finished(2), tables(2))
    assert texts.brief == texts.whole == "table of v0\ntable of v1\nv0 -> build/v0\nv1 -> build/v1\n"
    assert texts.packages == "v0 -> build/v0\nv1 -> build/v1\n"
    texts = results(finished(90), tables(90), built={"v3"})
    assert texts.brief.splitlines() == [
        "table of v3",
        "90 packages in build: v0, v1, v2 and 87 more",
        "`recipe show` prints their tables, and -v all of them here",
    ]
    assert len(texts.whole.splitlines()) == 180
    assert results(finished(0), dict.fromkeys(map(str, range(90)), "")).brief == ""


def engine(name):
    rows = [
        "  sm_75, profile 0: products: 24 fp16, 6 of them with a fused epilogue",
        "  fp16 as in the graph: 48 of 48",
    ]
    return "\n".join([f"table of {name}", plans.HEAD, *rows, "not validated on the device yet", "  cosine 1", ""])


def proofs(names):
    lines = [line for name in names for line in (f"{name}:", *engine(name).splitlines()[2:4])]
    return [plans.HEAD, *lines, "`recipe show` prints their tables, and -v all of them here"]


def test_what_engines_prove_stays_where_there_are_too_many_tables_and_of_hundreds_what_was_built():
    names = [f"v{number}" for number in range(9)]
    engines = {name: engine(name) for name in names}
    assert results(finished(0), engines, built=names).brief.splitlines() == proofs(names)
    assert results(finished(0), engines).brief.splitlines() == proofs(names)
    one = results(finished(0), engines, built={"v3"}).brief
    assert one == engines["v3"] + "\n".join([*proofs(name for name in names if name != "v3"), ""])
    unknown = "table\nthe kernels of the engine are not known: version 9\n"
    brief = results(finished(0), {**{f"v{number}": "" for number in range(9)}, "v9": unknown}).brief
    assert brief.splitlines()[1:3] == ["v9:", "  the kernels of the engine are not known: version 9"]
    names = [f"v{number}" for number in range(90)]
    engines = {name: engine(name) for name in names}
    assert results(finished(0), engines).brief == ""
    assert results(finished(0), engines, built=names[:20]).brief.splitlines() == proofs(names[:20])
