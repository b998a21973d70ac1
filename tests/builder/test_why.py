"""What a rebuild will cost, as a sum and as the time of a parallel build; and what an upgrade makes run again."""

from dataclasses import replace

import pytest
import toy
from small_builds import build, project_in, variant

from engine.builder.code import closure
from engine.builder.live_rows import LiveRows
from engine.builder.lookup import Lookup
from engine.builder.why import Cost, Finding, Total, examine, total, upgrade
from engine.digest import Digest
from engine.key import Change
from engine.report import costs
from engine.store.heads import Heads
from engine.store.store import Store
from engine.testing import plan_of
from engine.text import distribution

CHAIN = (toy.Begin(text="hi"), toy.Shout(), toy.Measure(), toy.Close())


def examined(project, *steps):
    return {each.job.name: each for each in examine(variant(project, *steps), Lookup(Store(project / "cache")))}


def set_seconds(project, planned, **seconds):
    """Let the last run of some jobs have taken other times."""
    store = Store(project / "cache")
    heads = Heads(store.notes)
    notes = heads.of(planned.subject).jobs
    for note in (note for name, note in notes.items() if name in seconds):
        store.record_path(note.key).unlink()
    heads.keep(planned.subject, {name: replace(notes[name], seconds=each) for name, each in seconds.items()})
    heads.save()


def test_a_job_that_never_ran_has_an_unknown_cost(project):
    findings = examined(project, *CHAIN)
    assert {each.cost for each in findings.values()} == {None}
    whole = total(list(findings.values()), 2)
    assert whole == Total(seconds=0.0, elapsed=0.0, parallel=2, unknown=4, waiting=0)
    assert costs.of_job(findings["begin"]) == "cost unknown"
    assert costs.of_build(whole) == "4 jobs of unknown cost"


def test_only_a_job_that_is_not_cached_costs_what_its_last_run_took(project):
    build(project, variant(project, *CHAIN))
    assert {each.cost for each in examined(project, *CHAIN).values()} == {None}
    assert total(list(examined(project, *CHAIN).values()), 2) is None
    recorded = {record.job: record.seconds for record in Store(project / "cache").records()}
    findings = examined(project, toy.Begin(text="bye"), *CHAIN[1:])
    assert {name: each.cost.seconds for name, each in findings.items()} == recorded
    assert {each.state for each in findings.values()} == {"stale", "unknown"}


def test_the_cost_outlives_the_record(project):
    planned = variant(project, *CHAIN)
    build(project, planned)
    set_seconds(project, planned, begin=90.0, shout=200.0)
    findings = examined(project, *CHAIN)
    assert [findings[name].cost.seconds for name in ("begin", "shout")] == [90.0, 200.0]
    assert costs.of_job(findings["begin"]) == "about 90 s"
    assert costs.of_job(findings["shout"]) == "about 3.3 min"


def test_the_cost_names_another_machine(project, monkeypatch):
    build(project, variant(project, *CHAIN))
    changed = (toy.Begin(text="bye"), *CHAIN[1:])
    here = dict(LiveRows(Store(project / "cache")).machine)
    monkeypatch.setattr(LiveRows, "machine", {**here, "cpu.model": "a laptop's CPU"})
    assert examined(project, *changed)["begin"].cost.machine == here["cpu.model"]
    assert f" on {here['cpu.model']}" in costs.of_job(examined(project, *changed)["begin"])


class _Job:
    """A job with the few fields that costs are computed from."""

    def __init__(self, name, needs=(), *, recipe="r", alone=False, options=()):
        self.recipe, self.name, self.earlier = recipe, name, tuple(needs)
        self.needs = {each: each for each in needs}
        self.traits = type("Traits", (), {"kind": name, "options": dict(options), "sources": {}, "exclusive": alone})


def finding(name, seconds, needs=(), state="stale", **more):
    waits_for = more.pop("waits_for", None)
    cost = None if seconds is None else Cost(seconds)
    return Finding(_Job(name, needs, **more), state, cost=cost, waits_for=waits_for)


@pytest.mark.parametrize(("parallel", "elapsed"), [(1, 19.0), (2, 14.0), (8, 14.0)])
def test_the_time_of_a_build_follows_its_longest_path_its_slots_and_jobs_that_run_alone(parallel, elapsed):
    findings = [
        finding("a", 1.0),
        finding("long", 6.0, ["a"]),
        finding("short", 5.0, ["a"]),
        finding("measure", 7.0, ["a"], alone=True),
    ]
    assert total(findings, parallel) == Total(19.0, elapsed, parallel, 0, 0)


def test_equal_jobs_of_two_variants_count_once():
    findings = [
        finding(name, 3.0, needs, recipe=recipe, options={"to": recipe}.items() if name == "own" else ())
        for recipe in ("one", "two")
        for name, needs in (("shared", ()), ("own", ("shared",)))
    ]
    assert total(findings, 2).seconds == 9.0
    assert total(findings, 2).elapsed == 6.0


def test_cached_jobs_and_jobs_for_other_hardware_do_not_count():
    findings = [
        finding("a", None, state="cached"),
        finding("compile", 60.0, ["a"], waits_for="T4 with tensorrt"),
        finding("b", 2.0, ["a"]),
    ]
    assert total(findings, 2) == Total(2.0, 2.0, 2, 0, 1)
    assert (
        costs.of_build(total(findings, 2)) == "about 2.0 s of work: 2.0 s with -j 2, without 1 job for other hardware"
    )


def test_ten_thousand_jobs_are_summed_in_one_pass():
    findings = [finding(f"job{number}", 1.0, [f"job{number - 1}"] if number % 10 else []) for number in range(10_000)]
    assert total(findings, 100) == Total(10_000.0, 100.0, 100, 0, 0)


def test_a_cost_of_almost_nothing_is_not_a_number():
    assert costs.of_build(Total(0.01, 0.01, 2, 0, 0)) == "less than 0.1 s of work: less than 0.1 s with -j 2"
    assert costs.of_build(Total(0.0, 0.0, 2, 3, 1)) == "3 jobs of unknown cost, 1 job for other hardware"


CODE = (Change("code", "a", "b"),)
RECIPE = {"model": {"source": "model.onnx"}, "profiles": {"batch": [1, 2, 4]}}


def upgraded(device, maker_version="0.0.9", name="net"):
    """Return the findings of a recipe for a GPU, of which only the engine has other code."""
    recipe = {**RECIPE, "name": name, "target": {"runtime": "tensorrt", "device": device}}
    jobs = plan_of(recipe)
    assert "trt-build" in [job.name for job in jobs]
    return [
        Finding(job, "stale", CODE, maker_version=maker_version) if job.name == "trt-build" else Finding(job, "cached")
        for job in jobs
    ]


def test_engines_are_counted_with_their_gpus(monkeypatch):
    monkeypatch.setattr(distribution, "version", lambda: "0.2.0")
    every = [*upgraded("T4", name="t4"), *upgraded("A10", name="a10"), *upgraded("L4", "0.2.0", name="l4")]
    whole = upgrade(every)
    assert str(whole) == (
        "after the upgrade from recipe 0.0.9 to recipe 0.2.0: "
        "2 jobs would run again, of these 2 TensorRT engines (T4, A10)"
    )
    assert upgrade([*upgraded("T4", name="one"), *upgraded("T4", name="two")]).jobs == 1
    assert whole.fields() == {"from": ["0.0.9"], "to": "0.2.0", "jobs": 2, "engines": 2, "gpus": ["T4", "A10"]}


def test_a_result_of_a_version_that_records_did_not_state_is_of_an_older_version():
    whole = upgrade(upgraded("T4", maker_version=""))
    assert str(whole).startswith(
        f"after the upgrade from an older version of recipe to {distribution.running()}: 1 job "
    )


def test_only_jobs_whose_code_alone_differs_count(tmp_path, monkeypatch):
    project = project_in(tmp_path)
    steps = (toy.Begin(text="hi"), toy.Shout())
    with monkeypatch.context() as older:
        older.setattr(distribution, "version", lambda: "0.0.9")
        build(project, variant(project, *steps))
    assert upgrade([*examined(project, toy.Begin(text="bye"), *steps[1:]).values()]) is None
    of_step = closure.of_step
    monkeypatch.setattr(closure, "of_step", lambda *its: replace(of_step(*its), digest=Digest("0" * 32)))
    assert upgrade([*examined(project, *steps).values()]).jobs == 2
    assert upgrade([*examined(project, toy.Begin(text="bye"), *steps[1:]).values()]).jobs == 1
    assert upgrade([*examined(project, *steps).values()]).versions == ("0.0.9",)


def test_an_edit_of_code_in_one_version_is_no_upgrade(tmp_path, monkeypatch):
    project = project_in(tmp_path)
    build(project, variant(project, toy.Begin()))
    of_step = closure.of_step
    monkeypatch.setattr(closure, "of_step", lambda *its: replace(of_step(*its), digest=Digest("0" * 32)))
    [finding] = examined(project, toy.Begin()).values()
    assert [change.row for change in finding.changes] == ["code"]
    assert upgrade([finding]) is None
    assert "code" not in finding.reasons
