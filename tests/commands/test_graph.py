"""The graph of a recipe's jobs: in text, for Mermaid and for Graphviz; shared jobs once."""

import json
import re
from pathlib import Path

import networkx as nx
import pytest

from engine.commands import graph as command
from engine.commands import parse
from engine.errors import UsageError
from engine.report import graph
from engine.report.graph import GraphJob

ROOT = Path(__file__).parents[2]
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


@pytest.fixture
def drawn(capsys, tmp_path):
    """What a command of a shipped recipe prints where nothing was built."""

    def run(command, *words):
        recipe = ROOT / "recipes" / "minilm_cpu.yaml"
        arguments = parse([command, str(recipe), *words, "--cache", str(tmp_path / "cache")])
        assert arguments.run(arguments) == 0
        return capsys.readouterr().out

    return run


def test_only_the_jobs_are_drawn_that_a_change_of_a_step_or_a_file_can_make_run_again(drawn):
    assert set(graph.FORMATS) == set(command._FORMATS)
    for start, reached in {
        "fuse": ["fuse", "quantize", "validate", "bench", "package"],
        ROOT / "recipes" / "samples" / "sentences.jsonl": ["reference", "validate", "bench", "package"],
    }.items():
        assert [line.split()[1] for line in drawn("graph", "--from", str(start)).splitlines()] == reached
    assert re.findall(r"j\d (.label=.\w+)", drawn("graph", "--from", "package", "--format", "dot")) == [
        '[label="package'
    ]
    with pytest.raises(UsageError, match="no job here is called 'fuze'") as refusal:
        drawn("graph", "--from", "fuze")
    assert "`fuse`" in refusal.value.hint


def test_why_a_job_is_unknown_is_told_by_the_jobs_before_it_that_run_first(drawn):
    lines = drawn("why", "bench").splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["new", "fetch"], ["unknown", "bench"]]
    assert [job["job"] for job in json.loads(drawn("why", "bench", "--json"))] == ["bench"]
