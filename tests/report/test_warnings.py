"""A warning stands beside its figure in every output: one summary of a busy machine and few samples goes to all.

So does the row of a CUDA graph: one summary of a model that was measured with and without goes to all.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from summaries import accuracy, bench, row, summary

from engine.builder import build_end
from engine.builder import difference as compare
from engine.builder.diff_sides import Side, SideJob, SideVariant
from engine.errors import JudgementError
from engine.events import Ended
from engine.kit.accuracy import built_model
from engine.kit.accuracy.report import PrecisionShares
from engine.kit.bench import budgets
from engine.kit.bench.report import BenchReport
from engine.report import difference, history
from engine.report.overview import VariantOverview, as_csv, as_markdown, as_text
from engine.report.page import page
from engine.report.table import table
from engine.runtimes.runner import CapturedGraph
from engine.store.history import PastBuild

ENGINE = Path(history.__file__).parents[1]
WORK = PrecisionShares.of({"int8 MatMul": 1}, {"batch": 1})
FEW = built_model._note_on_few_samples({"sample": 3}, WORK)
BUSY, FEW_WORDS = "the machine was busy (noise up to 35.0%)", "3 samples that keep a bound"
FIGURES = re.compile(r"\b(p50_ms|BenchReport|HeadlineFigures)\b|\.latencies\b")


def built(noise):
    one = summary(bench=bench(noise), validation=accuracy(0.97, 0.99, notes=FEW, work=WORK))
    one.variant.loaded.path = Path("r.yaml")
    return one


def overview(noise):
    """Return the overview of a variant that was built twice, so that its latency has a change."""
    figures = built(noise).headline
    earlier = replace(figures, latencies=(replace(figures.latencies[0], p50_ms=0.001), *figures.latencies[1:]))
    before = PastBuild(at=1.0, name="m", state="built", jobs={}, figures=earlier)
    return VariantOverview("m", "", "int8", "cpu", "up to date", figures, [before])


def comparison(noise):
    figures = built(noise).headline
    sides = [
        SideVariant("m", "", {"bench": SideJob({"options.a": option}, {}, is_stored=True)}, figures) for option in "12"
    ]
    return compare.of(Side("old", (sides[0],)), Side("new", (sides[1],)))


def error(noise):
    with pytest.raises(JudgementError) as caught:
        budgets.judge(bench(noise), [{"p50_ms": 0.1}])
    return f"{caught.value}; {FEW_WORDS}"  # an error about a latency says nothing about samples


OUTPUTS = {
    "report/table.py": lambda noise: table(built(noise)),
    "recipe show --json": lambda noise: json.dumps(built(noise).to_json()),
    "builder/summary.py": lambda noise: built(noise)._repr_html_(),
    "report/overview.py": lambda noise: "\n".join(as_text([overview(noise)])),
    "recipe show --markdown": lambda noise: "\n".join(as_markdown([overview(noise)])),
    "recipe show --csv": lambda noise: "\n".join(as_csv([overview(noise)])),
    "report/page": lambda noise: page.html([built(noise)], [], [overview(noise)], "recipe 0"),
    "the page of two": lambda noise: page.html([built(noise)] * 2, [], [overview(noise)] * 2, "recipe 0"),
    "report/difference.py": lambda noise: "\n".join(difference.as_text(comparison(noise))),
    "recipe diff --markdown": lambda noise: "\n".join(difference.as_markdown(comparison(noise))),
    "recipe diff --json": lambda noise: json.dumps(difference.as_json(comparison(noise))),
    "recipe diff in a notebook": lambda noise: comparison(noise)._repr_html_(),
    "report/history.py": lambda noise: "\n".join(history.lines(overview(noise).builds)),
    "recipe history --json": lambda noise: json.dumps(history.as_json(overview(noise).builds)),
    "the error of a budget": error,
}
PARTS_OF_THE_TABLE = ("report/table_lines.py",)


@pytest.mark.parametrize("output", OUTPUTS)
def test_each_output_names_both_warnings_and_people_read_no_ratio_of_a_busy_run(output):
    text = OUTPUTS[output](0.35)
    assert BUSY in text
    assert FEW_WORDS in text
    assert "json" in output or not re.search(r"3\.25 x|149900|1500(\.0+)?,", text), text
    assert "the machine was busy" not in OUTPUTS[output](0.05)


def test_a_ratio_does_not_count_if_one_of_its_rows_is_busy():
    rows = built(0.35).to_json()["bench"]
    assert [row["busy"] for row in rows] == [True, True]
    assert rows[0]["speed_up"] == {"pytorch-fp32": "not comparable"}
    assert built(0.05).to_json()["bench"][0]["speed_up"] == {"pytorch-fp32": "3.25 x"}
    [change] = difference.as_json(comparison(0.35))["variants"][0]["latencies"]
    assert change["verdict"] == "not comparable"
    ours, rival = bench(0.05).rows
    assert ours.speed_up(rival) == "3.25 x"
    assert ours.speed_up(replace(rival, noise=0.35)) == "not comparable"


def test_figures_of_another_machine_are_called_replayed():
    one = built(0.05)
    for record in one.records.values():
        record.origin = {"remote": "s3://here"}
    assert "replayed: the latencies were measured elsewhere, on a CPU" in table(one)
    assert "replayed: " in one.headline.warnings[0]


def test_each_module_that_prints_figures_is_one_of_these_outputs():
    files = [*(ENGINE / "report").rglob("*.py"), *(ENGINE / "commands").glob("*.py"), ENGINE / "builder/summary.py"]
    names = [path.relative_to(ENGINE).as_posix() for path in files if FIGURES.search(path.read_text("utf-8"))]
    known = (*OUTPUTS, *PARTS_OF_THE_TABLE)
    assert [name for name in names if not name.startswith(known)] == []


@pytest.mark.parametrize(("state", "warnings"), [("built", []), ("cached", ["replayed"])])
def test_latencies_that_a_build_did_not_measure_are_called_replayed_in_its_history(state, warnings):
    one = built(0.05)
    states = {"tell-bench": state, "tell-validation": "built"}
    tickets = [
        SimpleNamespace(
            job=job, record=one.records[job.name], variant=one.variant, ended=Ended("m", job.name, states[job.name])
        )
        for job in one.variant.jobs
    ]
    figures = build_end._figures(None, tickets)
    assert [each.partition(":")[0] for each in figures.warnings if "earlier build" in each] == warnings


GRAPH = CapturedGraph(capture_s=0.213, memory_bytes=34 << 20)
PLACE = "batch 1 x sequence 16 in a CUDA graph"
FIRST_ROW = ("report/overview.py", "recipe show --markdown", "the error of a budget")
"""Outputs that show the model only as it is run by default."""


def graphed(*, by_default):
    """Return a report of a model that ran in a CUDA graph, by default or beside, and without one."""
    name, graph, fields = "onnxruntime-fp16", {"graph": GRAPH, "p50_ms": 0.221}, {"p50_ms": 0.98}
    rows = (
        row(f"{name}-graph", ours=by_default, other_way=not by_default, **graph),
        row(f"{name}-no-graph" if by_default else name, ours=not by_default, other_way=by_default, **fields),
        row("pytorch-fp32", ours=False),
    )
    ratios = {"pytorch-fp32": 3.25, rows[by_default].runtime: 4.43 if by_default else 0.23}
    ours, other = (replace(each, ratio_to=ratios if each.ours else {}) for each in rows[:2])
    return BenchReport(threads=1, cpu="a CPU", rows=(ours, other, rows[2]) if by_default else (other, ours, rows[2]))


@pytest.mark.parametrize("by_default", [True, False], ids=["by default", "beside"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_each_output_has_the_row_of_a_cuda_graph(monkeypatch, output, by_default):
    monkeypatch.setattr(f"{__name__}.bench", lambda _noise: graphed(by_default=by_default))
    text = OUTPUTS[output](0.05)
    if output == "report/history.py":
        assert ("0.001 / 0.98" if by_default else "0.001 / 0.221") in text
    elif by_default or output not in FIRST_ROW:
        assert "onnxruntime-fp16-graph" in text or PLACE in text


def test_the_table_says_what_the_capture_of_a_graph_took(monkeypatch):
    monkeypatch.setattr(f"{__name__}.bench", lambda _noise: graphed(by_default=True))
    assert "CUDA graph for 1 x 16: captured in 0.21 s, 34.0 MiB" in table(built(0.05))
    assert re.search(r"onnxruntime-fp16-no-graph .* 4\.43 x", table(built(0.05)))
    assert "34.0 MiB" in OUTPUTS["report/page"](0.05)


def test_only_the_same_way_is_compared_with_an_earlier_build(monkeypatch):
    sides = []
    for by_default in (False, True):  # the recipe got a profile of one size, for which the graph is the default
        monkeypatch.setattr(f"{__name__}.bench", lambda _noise, by=by_default: graphed(by_default=by))
        sides.append(built(0.05).headline)
    changes = compare.latency_changes(*sides)
    assert [(each.new.place, each.old.p50_ms, each.new.p50_ms) for each in changes] == [
        (PLACE, 0.221, 0.221), ("batch 1 x sequence 16", 0.98, 0.98),
    ]  # fmt: skip
