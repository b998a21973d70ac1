"""The graph of a recipe's jobs: in text, for Mermaid and for Graphviz; shared jobs once."""

import re
from pathlib import Path

import networkx as nx
import pytest

from engine.commands import graph as command
from engine.commands import parse
from engine.report import graph
from engine.report.graph import GraphJob

JOBS = [
    GraphJob("fetch", "cached", (), ["a", "b"]),
    GraphJob("quantize", "changed", ("fetch",), ["a"]),
    GraphJob("quantize", "new", ("fetch",), ["b"]),
    GraphJob("package", "unknown", ("fetch", "quantize"), ["a"]),
]
PLAN = nx.DiGraph()
PLAN.add_nodes_from(JOBS)
PLAN.add_edges_from((JOBS[one], JOBS[other]) for one, other in [(0, 1), (0, 2), (0, 3), (1, 3)])


def test_text_has_a_row_for_each_job():
    assert list(graph.as_text(PLAN)) == [
        "cached   fetch (2 variants)",
        "changed  quantize (a)        <- fetch",
        "new      quantize (b)        <- fetch",
        "unknown  package (a)         <- fetch, quantize",
    ]


def test_mermaid_has_a_node_for_each_job_and_the_arrows_that_no_others_imply():
    lines = list(graph.as_mermaid(PLAN))
    assert lines[0] == "flowchart TD"
    assert '  j0["fetch (2 variants)<br/>cached"]:::done' in lines
    assert '  j2["quantize (b)<br/>new"]:::open' in lines
    assert [line.strip() for line in lines if "-->" in line] == ["j0 --> j1", "j0 --> j2", "j1 --> j3"]


def test_dot_is_one_directed_graph():
    text = "\n".join(graph.as_dot(PLAN))
    assert text.startswith("digraph recipe {")
    assert text.endswith("}")
    assert re.findall(r"j\d -> j\d", text) == ["j0 -> j1", "j0 -> j2", "j1 -> j3"]
    assert 'j0 [label="fetch (2 variants)\\ncached"' in text


def test_the_formats_of_the_command_are_those_of_the_report():
    assert set(graph.FORMATS) == set(command._FORMATS)


@pytest.mark.parametrize("format_", ["text", "mermaid", "dot"])
def test_a_recipe_s_jobs_are_drawn(format_, capsys, tmp_path):
    recipe = Path(__file__).parents[2] / "recipes" / "minilm_cpu.yaml"
    arguments = parse(["graph", str(recipe), "--format", format_, "--cache", str(tmp_path / "cache")])
    assert arguments.run(arguments) == 0
    drawn = capsys.readouterr().out
    for job in ("fetch", "export", "quantize", "validate", "bench", "package"):
        assert job in drawn
