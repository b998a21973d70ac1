"""Which jobs an upgrade of the program makes run again, and how many engines are among them."""

from dataclasses import replace

import toy
from small_builds import build, project_in, variant

from engine.builder import upgrade
from engine.builder.code import closure
from engine.builder.findings import Finding, examine
from engine.builder.lookup import Lookup
from engine.digest import Digest
from engine.key import Change
from engine.store.store import Store
from engine.testing import plan_of
from engine.text import distribution

CODE = (Change("code", "a", "b"),)
RECIPE = {"model": {"source": "model.onnx"}, "profiles": {"batch": [1, 2, 4]}}


def findings(device, maker_version="0.0.9", name="net"):
    """Return the findings of a recipe for a GPU, of which only the engine has other code."""
    recipe = {**RECIPE, "name": name, "target": {"runtime": "tensorrt", "device": device}}
    jobs = plan_of(recipe)
    assert "trt-build" in [job.name for job in jobs]
    return [
        Finding(job, "stale", CODE, maker_version=maker_version) if job.name == "trt-build" else Finding(job, "cached")
        for job in jobs
    ]


def examined(project, *steps):
    return examine(variant(project, *steps), Lookup(Store(project / "cache")))


def test_engines_are_counted_with_their_gpus(monkeypatch):
    monkeypatch.setattr(distribution, "version", lambda: "0.2.0")
    every = [*findings("T4", name="t4"), *findings("A10", name="a10"), *findings("L4", "0.2.0", name="l4")]
    whole = upgrade.of(every)
    assert str(whole) == (
        "after the upgrade from recipe 0.0.9 to recipe 0.2.0: "
        "2 jobs would run again, of these 2 TensorRT engines (T4, A10)"
    )
    assert whole.fields() == {"from": ["0.0.9"], "to": "0.2.0", "jobs": 2, "engines": 2, "gpus": ["T4", "A10"]}


def test_the_same_job_of_two_variants_counts_once():
    assert upgrade.of([*findings("T4", name="one"), *findings("T4", name="two")]).jobs == 1


def test_a_result_of_a_version_that_records_did_not_state_is_of_an_older_version():
    whole = upgrade.of(findings("T4", maker_version=""))
    assert str(whole).startswith(
        f"after the upgrade from an older version of recipe to {distribution.running()}: 1 job "
    )


def test_only_jobs_whose_code_alone_differs_count(tmp_path, monkeypatch):
    project = project_in(tmp_path)
    steps = (toy.Begin(text="hi"), toy.Shout())
    with monkeypatch.context() as older:
        older.setattr(distribution, "version", lambda: "0.0.9")
        build(project, variant(project, *steps))
    assert upgrade.of(examined(project, toy.Begin(text="bye"), *steps[1:])) is None
    of_step = closure.of_step
    monkeypatch.setattr(closure, "of_step", lambda *its: replace(of_step(*its), digest=Digest("0" * 32)))
    assert upgrade.of(examined(project, *steps)).jobs == 2
    assert upgrade.of(examined(project, toy.Begin(text="bye"), *steps[1:])).jobs == 1
    assert upgrade.of(examined(project, *steps)).versions == ("0.0.9",)


def test_an_edit_of_code_in_one_version_is_no_upgrade(tmp_path, monkeypatch):
    project = project_in(tmp_path)
    build(project, variant(project, toy.Begin()))
    of_step = closure.of_step
    monkeypatch.setattr(closure, "of_step", lambda *its: replace(of_step(*its), digest=Digest("0" * 32)))
    [finding] = examined(project, toy.Begin())
    assert [change.row for change in finding.changes] == ["code"]
    assert upgrade.of([finding]) is None
    assert "code" not in finding.reasons
