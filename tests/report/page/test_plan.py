"""The picture of the plan."""

import re

import networkx as nx

from engine.report.graph import GraphJob
from engine.report.page import plan
from engine.report.page.values import Value

JOBS = [
    GraphJob("fetch", "cached", (), ["a", "b"]),
    GraphJob("export", "cached", ("fetch",), ["a", "b"]),
    GraphJob("fuse", "stale", ("export",), ["a"]),
    GraphJob("bench", "unknown", ("fetch", "fuse"), ["a"]),
    GraphJob("check", "new", ("fetch",), ["b"]),
]
PLAN = nx.DiGraph()
PLAN.add_nodes_from(JOBS)
PLAN.add_edges_from((JOBS[one], JOBS[other]) for one, other in [(0, 1), (1, 2), (0, 3), (2, 3), (0, 4)])
SECONDS = [Value(1.25, "show.0.steps.0.seconds"), *[Value(None, "")] * 4]


def boxes(drawn):
    """Return the place of each job's box."""
    rows = re.findall(r'<rect x="([\d.-]+)" y="([\d.-]+)".*?<text[^>]*>(\w+)', drawn, re.DOTALL)
    return {name: (float(x), float(y)) for x, y, name in rows}


def test_a_job_stands_below_the_jobs_that_it_reads_and_boxes_do_not_overlap():
    places = boxes(str(plan.picture(PLAN, SECONDS)))
    assert places.keys() == {job.name for job in JOBS}
    for job in JOBS:
        assert all(places[earlier][1] < places[job.name][1] for earlier in job.reads)
    for one, (x, y) in places.items():
        assert not [other for other, (left, top) in places.items() if other != one and abs(x - left) < 172 and y == top]


def test_lines_that_others_imply_are_left_out_and_states_durations_and_shared_jobs_are_in_words():
    drawn = str(plan.picture(PLAN, SECONDS))
    assert drawn.count('class="edge"') == 4  # not from fetch to bench
    assert "fetch (2 variants)" in drawn
    assert 'data-path="show.0.steps.0.seconds"' in drawn
    assert "stale · a" in drawn
    assert 'role="img"' in drawn
