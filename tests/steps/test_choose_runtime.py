"""The step `choose-runtime`: the fastest model that validates, by stored figures alone."""

import json

import pytest

from engine.errors import Exit, JudgementError
from engine.kit.accuracy.report import AccuracyReport, Worst
from engine.kit.choice.candidates import CandidateModel, CandidatesReport, Latency
from engine.recipe.schema import ModelSection, Recipe, TargetSection, Validation
from engine.recipe.values import Bound
from engine.runtimes import choice
from engine.step import REPORT, write_report
from engine.steps.choose_runtime import ChooseRuntime

NAMES = ("onnxruntime", "openvino")


def accuracy(worst):
    return AccuracyReport(cases=1, kinds={"sample": 1}, random=False, cosine=Worst(worst, worst, "line 1", ""))


def measured(folder, *, ratio=1.5, cosines=(0.99, 0.995)):
    """Write figures in which OpenVINO is `ratio` times faster."""
    rounds = (10.0, 10.5, 9.5, 10.0)
    times = (rounds, tuple(each / ratio for each in rounds))
    models = {
        name: CandidateModel(accuracy(worst), (Latency({"batch": 1}, each),))
        for name, worst, each in zip(NAMES, cosines, times, strict=True)
    }
    write_report(folder, CandidatesReport(cpu="a CPU", threads=1, candidates=models).to_json())
    return folder


def run(tmp_path, figures, **bounds):
    models = {}
    for name in NAMES:
        models[f"model_{name}"] = tmp_path / name
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "model").write_text(name)
    step = ChooseRuntime(candidates=NAMES, precision="int8", **bounds)
    out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    return step, step.run(out, measured=figures, **models), out


def test_the_faster_model_is_handed_on_with_the_name_of_its_runtime_and_without_a_lead_the_default(tmp_path):
    step, report, out = run(tmp_path, measured(tmp_path / "m"))
    step.judge(report)
    assert report.runtime == choice.read(out) == "openvino"
    assert (out / "model").read_text() == "openvino"
    assert report.candidates["openvino"].lead.ratio == pytest.approx(1.5)
    _, report, out = run(tmp_path, measured(tmp_path / "even", ratio=1.0))
    assert report.runtime == choice.read(out) == "onnxruntime"


def test_new_figures_with_the_same_choice_change_no_byte(tmp_path):
    outs = [run(tmp_path, measured(tmp_path / f"m{ratio}", ratio=ratio))[2] for ratio in (1.5, 1.7)]
    first, second = ({path.name: path.read_bytes() for path in out.iterdir()} for out in outs)
    assert first == second
    assert len(first) == 2


def test_the_fastest_that_misses_a_bound_is_rejected_with_the_number(tmp_path):
    _, report, _ = run(tmp_path, measured(tmp_path / "m", cosines=(0.99, 0.90)), cosine=Bound(at_least=0.98))
    assert report.runtime == "onnxruntime"
    assert "0.9 is below at_least 0.98" in report.candidates["openvino"].rejected[0]
    assert report.candidates["openvino"].lead is None


def test_where_the_default_misses_a_bound_the_next_one_is_the_default(tmp_path):
    figures = measured(tmp_path / "m", ratio=0.5, cosines=(0.90, 0.99))
    _, report, _ = run(tmp_path, figures, cosine=Bound(at_least=0.98))
    assert (report.runtime, report.default) == ("openvino", "openvino")


def test_no_valid_model_is_an_error_with_the_numbers_of_each(tmp_path):
    figures = measured(tmp_path / "m")
    step, report, out = run(tmp_path, figures, cosine=Bound(at_least=0.999))
    assert report.runtime is None
    assert list(out.iterdir()) == []
    with pytest.raises(JudgementError, match="No runtime gives a model that keeps the bounds") as caught:
        step.judge(report)
    assert caught.value.exit is Exit.JUDGED
    assert [fact.partition(":")[0] for fact in caught.value.facts] == list(NAMES)
    assert "0.995" in str(caught.value)
    assert "--force measure-runtimes" in caught.value.hint


def test_no_model_at_all_is_an_error_with_the_reason_of_each(tmp_path):
    absent = {"onnxruntime": "it has no kernel for Foo", "openvino": "it does not know Foo"}
    write_report(tmp_path / "m", CandidatesReport(cpu="a CPU", threads=1, candidates={}, absent=absent).to_json())
    step, report, _ = run(tmp_path, tmp_path / "m")
    assert (report.runtime, report.shapes) == (None, ())
    with pytest.raises(JudgementError) as caught:
        step.judge(report)
    assert list(caught.value.facts) == [f"{name}: {reason}" for name, reason in absent.items()]


def test_figures_of_a_gpu_name_it_and_older_figures_have_none(tmp_path):
    figures = measured(tmp_path / "m")
    raw = json.loads((figures / REPORT).read_text())
    assert "gpu" not in raw
    assert run(tmp_path, figures)[1].gpu == ""
    write_report(figures, {**raw, "gpu": "Tesla T4"})
    report = run(tmp_path, figures)[1]
    assert report.gpu == "Tesla T4"
    assert [*report.lines()][-1] == "measured interleaved at 1 shape on Tesla T4"


def test_on_a_gpu_no_share_of_multiplications_is_judged_since_nothing_counts_it_there():
    recipe = Recipe(
        name="m", model=ModelSection(source="hf:a/b"), precision="fp16", tensorrt={"version": "10.x"},
        target=TargetSection(runtime="auto", device="T4"), validate=Validation(precision_share=Bound(at_least=0.5)),
    )  # fmt: skip
    assert ChooseRuntime.for_recipe(recipe).precision_share is None
    assert ChooseRuntime.for_recipe(recipe).models_of() == {
        "model_onnxruntime": "onnxruntime",
        "model_inductor": "inductor",
        "model_tensorrt": "tensorrt",
    }


def test_bounds_are_rows_of_the_key_since_the_choice_follows_from_them():
    recipe = Recipe(
        name="m", model=ModelSection(source="hf:a/b"), target=TargetSection(runtime="auto"),
        validate=Validation(cosine=Bound(at_least=0.97)),
    )  # fmt: skip
    step = ChooseRuntime.for_recipe(recipe)
    assert step.options()["cosine"] == {"at_least": 0.97, "at_most": None}
    assert step.models_of() == {"model_onnxruntime": "onnxruntime", "model_openvino": "openvino"}
    assert ChooseRuntime.for_recipe(recipe.as_run_by("onnxruntime")) is None
