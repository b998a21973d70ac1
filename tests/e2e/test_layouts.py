"""The layouts of a package on a real server: both are measured, and a recipe keeps the faster one."""

import json
import shutil

import models
import pytest
from program import Program
from tiny_project import RECIPE, SAMPLES

from engine.kit.bench.interleaving import Budget
from engine.kit.choice.layouts import LayoutsReport
from engine.kit.triton.serving import Serving
from engine.step import REPORT
from engine.steps.measure_layouts import MeasureLayouts

pytestmark = pytest.mark.slow


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
    measured = [*step.shapes, {"requests": 9}]  # the last are texts of 8 to 16 tokens, all at once
    assert {name: [each.shape for each in timed.latencies] for name, timed in report.layouts.items()} == {
        "ensemble": measured,
        "fused": measured,
    }
    assert all(len(each.rounds_ms) == 4 for timed in report.layouts.values() for each in timed.latencies)
    assert report.server.asked == "m_ensemble_text"
    assert LayoutsReport.from_json(json.loads((tmp_path / "out" / REPORT).read_text())) == report


@pytest.mark.whole
def test_a_recipe_keeps_the_layout_that_was_measured(environment, tiny_bert, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "samples.jsonl").write_text(SAMPLES)
    shutil.copytree(tiny_bert, tmp_path / "model")
    (tmp_path / "r.yaml").write_text(f"{RECIPE}package: {{triton: {{layout: auto}}}}\n")
    program = Program(tmp_path)
    program.environment["RECIPE_TRITON_VENV"] = str(environment)
    done = program("build", "r.yaml", expect=0)
    [variant] = json.loads(program("show", "r.yaml", "--json", expect=0).stdout)
    report = next(step["report"] for step in variant["steps"] if step["job"] == "choose-layout")
    folders = {path.name for path in (tmp_path / "build" / "tiny").iterdir() if path.is_dir()}
    expected = {"fused": {"tiny_text"}, "ensemble": {"tiny", "tiny_tokenizer", "tiny_postprocess", "tiny_text"}}
    assert folders == expected[report["layout"]], done.stderr
    assert set(program.states("r.yaml").values()) == {"cached"}
    text = (tmp_path / "r.yaml").read_text().replace("layout: auto", "layout: fused")
    (tmp_path / "r.yaml").write_text(text)
    program("build", "r.yaml", "--to", "package", expect=0)
    folders = {path.name for path in (tmp_path / "build" / "tiny").iterdir() if path.is_dir()}
    assert folders == {"tiny_text"}
