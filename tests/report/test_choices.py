"""The lines about the chosen runtime in tables, and in `recipe why`."""

from types import SimpleNamespace

from engine.builder.job import Job
from engine.builder.summary import Summary
from engine.builder.variant import PlannedVariant
from engine.builder.why import Finding
from engine.kit.choice.candidates import Lead
from engine.kit.choice.report import ChoiceReport, Compared
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.report import choices
from engine.report.table import table
from engine.steps.choose_runtime import ChooseRuntime
from engine.steps.fuse import Fuse
from engine.steps.shape_infer import ShapeInfer

CHOICE = ChoiceReport(
    runtime="b", default="a", cpu="a CPU", threads=1, shapes=({"batch": 1},), order=("a", "b"),
    candidates={"a": Compared(p50_ms=(2.0,)), "b": Compared(p50_ms=(1.0,), lead=Lead(2.0, (1.9, 2.1)))},
)  # fmt: skip
RECORD = SimpleNamespace(
    report=CHOICE.to_json(), report_version=1, name="choose-runtime", size=1, artifact="0", seconds=0.0, peak_bytes=0,
    anonymous_bytes=0, machine={}, key={},
)  # fmt: skip
JOB = Job("m", "choose-runtime", ChooseRuntime(candidates=("a", "b")), {"model_a": "fuse", "model_b": "shape-infer"})
OTHERS = (Job("m", "shape-infer", ShapeInfer(), {}), Job("m", "fuse", Fuse(), {"shaped": "shape-infer"}))
HEADLINE = "auto -> b, 2.00 x faster than a [1.90, 2.10]"


def summary(**records):
    target = TargetSection(runtime="auto")
    recipe = Recipe(name="m", model=ModelSection(source="hf:a/b"), target=target)
    variant = PlannedVariant(SimpleNamespace(recipe=recipe, variant="", name="m"), (*OTHERS, JOB))
    return Summary(variant, {name.replace("_", "-"): record for name, record in records.items()})


def test_the_table_begins_with_the_choice_and_the_rejected_candidates():
    lines = table(summary(choose_runtime=RECORD)).splitlines()
    assert lines[1:3] == [HEADLINE, "  rejected a: slower than b"]


def test_json_has_the_whole_report():
    assert summary(choose_runtime=RECORD).to_json()["runtime"] == CHOICE.to_json()


def test_a_build_without_a_choice_has_no_line():
    assert choices.lines(summary()) == []
    assert "runtime" not in summary().to_json()


def test_why_shows_the_choice_of_a_cached_job_only():
    assert choices.of_job(Finding(JOB, "cached", record=RECORD))[0] == HEADLINE.replace("auto", "chosen")
    assert choices.of_job(Finding(JOB, "new")) == []
