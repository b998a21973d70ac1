"""Tables of the page: their columns, their cells, and the words that are explained below them."""

from markupsafe import Markup

from engine.report.graph import GraphJob
from engine.report.page import tables
from engine.report.page.tables import PageColumn, PageTable
from engine.report.page.values import Value


def test_a_column_that_is_empty_in_all_rows_is_left_out_and_measures_are_explained():
    columns = [PageColumn("a", ["x", "y"]), PageColumn("b", ["", ""]), PageColumn("c", ["", ""], always=True)]
    table = PageTable("all", [*columns, PageColumn("d", ["", "z"])])
    assert [column.title for column in table.shown] == ["a", "c", "d"]
    assert table.rows == [("x", "", ""), ("y", "", "z")]
    table = PageTable("all", [PageColumn("measure", ["cosine", "other"]), PageColumn("p50 ms", ["", "1"])])
    assert list(table.words) == ["p50 ms", "cosine"]
    assert all(sentence.endswith(".") for sentence in table.words.values())


def test_a_measure_has_its_mean_its_worst_value_and_a_remark():
    measured = {"cosine": {"mean": 0.99, "worst": 0.9, "sample": "line 8", "text": "a text"},
                "agreement": {"share": 0.5, "differ": ["line 3"], "choices": 2}, "cases": 5}  # fmt: skip
    rows = tables.accuracy(Value(measured, "p"), "m").rows
    assert [row[0] for row in rows] == ["cosine", "agreement"]
    assert rows[0][3:] == ("line 8", "a text", "")
    assert rows[1][-1] == "other answers in: line 3"


def test_a_speed_up_stands_beside_the_rival():
    ours = {"runtime": "r", "ours": True, "p50_ms": 1.0, "ratio_to": {"r": 2.0}, "ratio_intervals": {"r": [1.5, 2.5]}}
    rows = [Value({"shape": {}, "via": "in-process", **each}, f"p.{number}")
            for number, each in enumerate([ours, {"runtime": "r", "ours": False, "p50_ms": 2.0}])]  # fmt: skip
    table = tables.latencies(rows, "m")
    assert [column.title for column in table.shown] == ["runtime", "p50 ms", "speed-up"]
    assert [row[0] for row in table.rows] == ["r (ours)", "r"]
    assert table.rows[1][2].striptags() == "2.00 x (1.50 x to 2.50 x)"
    assert table.ours == [True, False]


def test_jobs_of_several_variants_name_them():
    listed = [GraphJob("fetch", "cached", (), ["a", "b"]), GraphJob("bench", "new", ("fetch",), ["a"])]
    table = tables.jobs(listed, [Value(None, "")] * 2, "all")
    assert table.rows == [("fetch", "a, b", "cached", ""), ("bench", "a", "new", "fetch")]


def test_builds_have_their_figures_and_throughputs_follow_from_the_medians():
    build = {"at": 1.0, "name": "x", "state": "failed", "jobs": {}, "figures": {"latencies": []}, "runs": []}
    table = tables.builds([Value(build, "p")], "m")
    assert [column.title for column in table.shown] == ["when", "state"]
    table = tables.throughput({"r": [(8, Value(2.0, "p"))]}, "m")
    assert [cell if isinstance(cell, str) and "<" not in cell else cell.striptags() for cell in table.rows[0]] == [
        "r", "8", "2.000", "4,000",
    ]  # fmt: skip


def test_starts_have_their_figures_or_the_reason():
    those = [{"runtime": "r", "ours": True, "load_s": 0.1234, "first_ms": 3.0, "peak_mib": 51.1},
             {"runtime": "q", "reason": "no GPU"}]  # fmt: skip
    table = tables.starts([Value(each, f"p.{number}") for number, each in enumerate(those)], "m")
    cells = [[Markup(cell).striptags() for cell in row] for row in table.rows]
    assert cells == [["r (ours)", "0.1234", "3.000", "51.1", ""], ["q", "", "", "", "no GPU"]]
    assert table.ours == [True, False]
    assert len(table.words) == 3
