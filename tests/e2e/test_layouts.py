"""The layouts of a package on a real server: both are measured, and a recipe keeps the faster one."""

import json

import models
import pytest
from quick_program import quick
from tiny_project import OF_ONNX, RECIPE, SAMPLES

from engine.kit.bench.interleaving import Budget
from engine.kit.choice.layouts import LayoutsReport
from engine.kit.triton.serving import Serving
from engine.step import REPORT
from engine.steps.measure_layouts import MeasureLayouts

pytestmark = [pytest.mark.slow, pytest.mark.whole("tests/kit/choice/test_layouts.py chooses by given figures")]


class Quick(MeasureLayouts):
    """The real step, in less time."""

    budget = Budget(seconds=0.5, warm_up=0.2, rounds=4)


def test_both_layouts_are_measured_in_turns(environment, tmp_path, monkeypatch):
    monkeypatch.setenv("RECIPE_TRITON_VENV", str(environment))
    source = tmp_path / "source"
    models.onnx_text(source / "model.onnx")
    models.save_tokenizer(source)
    options = {"task": "text-classification", "largest": {"batch": 4, "sequence": 16}, "layout": "auto"}
    step = Quick(
        serving=Serving(model_name="m", ensemble="m_text", **options), threads=1,
        shapes=({"batch": 1, "sequence": 8}, {"batch": 2, "sequence": 16}),
    )  # fmt: skip
    report = step.run(tmp_path / "out", compiled=source, exported=source, checkpoint=source)
    assert report.absent == {}
    kinds = [*step.shapes, {"lengths": 8}]  # the last are texts of 8 to 16 tokens
    measured = [{**kind, "clients": clients} for kind in kinds for clients in (1, 8)]
    assert {name: [each.shape for each in timed.latencies] for name, timed in report.layouts.items()} == {
        "ensemble": measured,
        "fused": measured,
    }
    assert all(len(each.rounds_ms) == 4 for timed in report.layouts.values() for each in timed.latencies)
    assert report.server.asked == "m_ensemble_text"
    assert LayoutsReport.from_json(json.loads((tmp_path / "out" / REPORT).read_text())) == report


@pytest.fixture(scope="module")
def project(environment, tmp_path_factory):
    """A project whose recipe leaves layout and padding to a measurement, and is built."""
    folder = tmp_path_factory.mktemp("auto")
    (folder / "pyproject.toml").write_text("")
    (folder / "samples.jsonl").write_text(SAMPLES)
    models.classifier_with_tokenizer(folder / "model")
    recipe = RECIPE.replace("precision: int8", "precision: fp32").replace("model: {source: model}\n", OF_ONNX)
    recipe = recipe.partition("bench:")[0]
    (folder / "r.yaml").write_text(f"{recipe}package: {{triton: {{layout: auto, padding: auto, threads: 1}}}}\n")
    program = quick(folder)
    program.environment["RECIPE_TRITON_VENV"] = str(environment)
    program("build", "r.yaml", expect=0)
    return program


@pytest.fixture(scope="module")
def reports(project):
    """What `recipe show` tells about each job."""
    variant = project.shown("r.yaml")
    return {step["job"]: step["report"] for step in variant["steps"]}


def models_of(project):
    """Return the folder of each model of the package."""
    return {path.name: path for path in (project.folder / "build" / "tiny").iterdir() if path.is_dir()}


def test_layout_and_padding_are_both_measured_and_show_has_the_figures(project, reports):
    measured, chosen = reports["measure-layouts"], reports["choose-layout"]
    assert list(measured["layouts"]) == ["ensemble", "fused"]
    assert {len(each["latencies"]) for each in measured["layouts"].values()} == {4}  # 16 tokens and mixed lengths
    assert list(measured["paddings"]) == ["buckets", "none"]
    assert len(chosen["leads"]) == 4
    assert chosen["padding_lead"]["ratio"] > 0
    assert "absent" not in chosen
    log = project("logs", "r.yaml", "choose-layout", expect=0).stdout
    assert f"layout: {chosen['layout']}, padding: {chosen['padding']}" in log


def test_the_package_has_the_layout_and_the_padding_that_were_chosen(project, reports):
    chosen, folders = reports["choose-layout"], models_of(project)
    expected = {"fused": {"tiny_text"}, "ensemble": {"tiny", "tiny_tokenizer", "tiny_postprocess", "tiny_text"}}
    assert set(folders) == expected[chosen["layout"]]
    [settings] = [path for each in folders.values() for path in each.rglob("settings.json") if "tokenizer" in str(path)]
    buckets = json.loads(settings.read_text()).get("buckets", [])
    assert buckets == ([16, 32] if chosen["padding"] == "buckets" else [])
    assert set(project.states("r.yaml").values()) == {"cached"}


def test_the_lock_keeps_both_choices_on_an_empty_store(project, reports, tmp_path):
    project("lock", "r.yaml", expect=0)
    [lock] = project.folder.glob("*.lock*")
    chosen = reports["choose-layout"]
    assert f"layout: {chosen['layout']}" in lock.read_text()
    assert f"padding: {chosen['padding']}" in lock.read_text()
    empty = ("--cache", str(tmp_path / "store"))
    states = project.states("r.yaml", "--locked", "--to", "measure-layouts", *empty)
    assert states["measure-layouts"] == "cached"  # the lock has its figures


@pytest.mark.whole
def test_a_recipe_that_names_its_layout_again_gets_it(project):
    text = (project.folder / "r.yaml").read_text().replace("layout: auto, padding: auto", "layout: fused")
    (project.folder / "named.yaml").write_text(text)
    project("build", "named.yaml", expect=0)
    assert set(models_of(project)) == {"tiny_text"}
