"""Plans of several points of a search in one: what they share exists once, and one job takes all their models."""

from dataclasses import replace

import graphs
import pytest
from process_cluster import ProcessCluster
from quick_race import QuickRace

from engine import api
from engine.builder import joining, registry
from engine.builder.loop import run
from engine.builder.options import Options
from engine.cluster.executor import ClusterExecutor
from engine.events import Ended
from engine.steps.race import Contestant

NET = """\
name: net
model: {source: net.onnx}
profiles: [{batch: [1, 2, 4]}]
validate: {cosine: 0.5, max_abs: {at_most: 100}, variation: 0.1}
bench: {threads: 1}
"""


def sessions(recipe, points, cache):
    return {
        label: api.session(recipe, cache=cache, to=["validate"], set=fields, remote=False)
        for label, fields in points.items()
    }


def joined(chosen, axes, **fields):
    """Return the plan of a race of planned variants by label."""
    variants = {label: session.variants[0] for label, session in chosen.items()}
    contestants = tuple(Contestant.for_recipe(each.loaded.recipe, axes) for each in variants.values())
    return joining.joined(variants, QuickRace(contestants=contestants, **fields), registry.steps())


def raced(chosen, **fields):
    """Build a race; return the states of its jobs by name, and the record of the race."""
    plan = joined(chosen, {"batch": 2}, **fields)
    session = replace(next(iter(chosen.values())), variants=(plan,))
    events = []
    finished = session.build(Options(is_trial=True), events.append)
    assert not finished.failures, finished.failures
    [record] = [each.record for each in session.findings() if each.job.name == "race"]
    session.lookup.store.leave()
    return {event.job: event.state for event in events if isinstance(event, Ended)}, record


@pytest.fixture
def project(tmp_path):
    graphs.write(tmp_path / "net", graphs.layers(16, 64))
    (tmp_path / "net" / "model.onnx").rename(tmp_path / "net.onnx")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "r.yaml").write_text(NET)
    return tmp_path


POINTS = {"written": (), "int8": ("precision=int8",)}


def test_the_points_of_a_text_model_share_all_jobs_up_to_where_they_differ(request, tmp_path):
    import openvino_here  # noqa: F401 - skips where OpenVINO is missing

    recipe = request.config.rootpath / "recipes" / "minilm_cpu.yaml"
    points = {"int8": (), "openvino-int8": ("target.runtime=openvino",)}
    plan = joined(sessions(recipe, points, tmp_path / "cache"), {"batch": 1, "sequence": 16})
    assert sorted(job.name for job in plan.jobs) == [
        "export", "fetch", "fuse", "openvino-build", "quantize", "race", "reference", "shape-infer", "validate",
        "validate@openvino-int8",
    ]  # fmt: skip
    race = plan.jobs[-1]
    assert race.needs == {"exported": "export", "model_0": "validate", "model_1": "validate@openvino-int8"}
    assert [each.execution.runtime for each in race.step.contestants] == ["onnxruntime", "openvino"]
    places = {job.name: place for place, job in enumerate(plan.jobs)}
    assert all(places[maker] < places[job.name] for job in plan.jobs for maker in job.earlier)


def test_a_point_with_a_runtime_that_stands_for_several_keeps_the_jobs_of_both(project):
    import openvino_here  # noqa: F401 - skips where OpenVINO is missing

    points = {"auto": ("target.runtime=auto",), "int8": ("precision=int8", "target.runtime=auto")}
    plan = joined(sessions(project / "r.yaml", points, project / "cache"), {"batch": 2})
    names = [job.name for job in plan.jobs]
    assert len(set(names)) == len(names)
    race = plan.jobs[-1]
    assert (race.needs["model_0"], race.needs["model_1"]) == ("validate", "validate@int8")
    assert {"choose-runtime", "choose-runtime@int8", "measure-runtimes", "measure-runtimes@int8"} <= set(names)
    assert plan.jobs[names.index("validate@int8")].needs["compiled"] == "choose-runtime@int8"


def test_only_the_race_runs_after_its_points_and_only_once_whatever_they_are_called(project):
    """A race is no build of the recipe."""
    for session in sessions(project / "r.yaml", POINTS, project / "cache").values():
        assert not session.build(Options(is_trial=True), lambda _: None).failures
        session.lookup.store.leave()
    states, record = raced(sessions(project / "r.yaml", POINTS, project / "cache"), cut=1.25)
    assert states.pop("race") == "built"
    assert set(states.values()) == {"cached"}
    common = {"fetch", "reference", "shape-infer", "fuse"}
    assert common <= states.keys()
    assert not any(name.startswith(f"{each}@") for name in states for each in common)
    assert len(record.report["rows"]) == len(POINTS)
    renamed = dict(zip("ab", sessions(project / "r.yaml", POINTS, project / "cache").values(), strict=True))
    again, same = raced(renamed, cut=1.25)
    assert set(again.values()) == {"cached"}
    assert same.digest == record.digest
    assert not api.show(project / "r.yaml", cache=project / "cache")[0].records


@pytest.mark.whole("tests/builder/executors run jobs of other steps on a cluster")
def test_a_cluster_runs_a_race_as_any_job(project, monkeypatch):
    cluster = ProcessCluster(project)
    for name, value in {"RECIPE_REMOTE": cluster.remote, "RECIPE_TRUST": "none"}.items():
        monkeypatch.setenv(name, value)
    cluster.add("one")
    try:
        first = api.session(project / "r.yaml", cache=project / "cache", to=["validate"])
        int8 = api.session(project / "r.yaml", cache=project / "cache", to=["validate"], set=["precision=int8"])
        plan = joined({"written": first, "int8": int8}, {"batch": 2})
        executor = ClusterExecutor(cluster.engine(), first.lookup, list(plan.jobs))
        events = list(run([plan], first.lookup, executor, Options(is_trial=True, out=project / "build")))
    finally:
        cluster.end()
    states = {event.job: (event.state, event.error) for event in events if isinstance(event, Ended)}
    assert states["race"] == ("built", None), states
