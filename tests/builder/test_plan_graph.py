"""The plan as a graph: what comes before a job, and what a change of a job can change."""

import pytest
import toy

from engine.builder import plan_graph
from engine.builder.job import Job
from engine.builder.variant import PlannedVariant


def job(name, *gates, **needs):
    return Job("r", name, toy.Close(), needs, gates=gates)


FETCH, EXPORT, FUSE = job("fetch"), job("export", model="fetch"), job("fuse", graph="export")
CHECK = job("check", fused="fuse", model="fetch")
PACK = job("pack@tensorrt", "check", fused="fuse", also="fuse")
OTHER = job("other")
PLAN = (FETCH, EXPORT, FUSE, CHECK, PACK, OTHER)


def names(jobs):
    return [each.name for each in jobs]


def test_an_edge_has_the_parameters_that_pass_the_output_on_and_a_gate_has_none():
    edges = {(one, other): inputs for (_, one), (_, other), inputs in plan_graph.of(PLAN).edges(data="inputs")}
    assert edges == {
        ("fetch", "export"): ["model"],
        ("export", "fuse"): ["graph"],
        ("fuse", "check"): ["fused"],
        ("fetch", "check"): ["model"],
        ("fuse", "pack@tensorrt"): ["fused", "also"],
        ("check", "pack@tensorrt"): [],
    }


def test_the_jobs_of_two_variants_are_apart():
    graph = plan_graph.of([*PLAN, Job("s", "fetch", toy.Close(), {})])
    assert len(graph) == len(PLAN) + 1


def test_all_jobs_stand_before_a_job_the_nearest_first():
    variant = PlannedVariant(None, PLAN)
    assert variant.before(PACK) == ["fuse", "check", "export", "fetch"]
    assert variant.before(OTHER) == []


@pytest.mark.parametrize(
    ("last", "kept"),
    [
        (["fuse"], ["fetch", "export", "fuse"]),
        (["pack"], ["fetch", "export", "fuse", "check", "pack@tensorrt"]),  # users name steps
        (["other", "export"], ["fetch", "export", "other"]),
        (["nothing"], []),
    ],
)
def test_up_to_a_step_stays_what_it_needs_in_the_order_of_the_plan(last, kept):
    assert names(plan_graph.up_to(PLAN, last)) == kept


@pytest.mark.parametrize(
    ("first", "changed"),
    [
        (FUSE, {"fuse", "check", "pack@tensorrt"}),
        (CHECK, {"check"}),  # a gate passes nothing on
        (OTHER, {"other"}),
    ],
)
def test_a_change_reaches_the_jobs_whose_inputs_are_made_from_an_output(first, changed):
    assert plan_graph.changed_by(PLAN, [first]) == {("r", name) for name in changed}
