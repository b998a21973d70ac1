from dataclasses import replace

import graphs
import numpy as np
import onnx
import pytest

from engine.errors import JudgementError, StepError
from engine.kit.accuracy.batching import RowBatching
from engine.kit.accuracy.report import AccuracyReport, Agreement, MetricReport, Worst
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.kit.onnx import onnx_files
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.recipe.values import Bound, Metric
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort
from engine.steps.validate import Validate


def answered(directory, unanswered):
    session = ort.session(directory, threads=1)
    return [replace(case, outputs=ort.run(session, case.inputs)) for case in unanswered]


def drawn(count=12, features=64, kind="sample"):
    generator = np.random.default_rng(5)
    rows = generator.standard_normal((count, 1, features)).astype(np.float32)
    return [Case(f"line {n}", f"text number {n}", kind, {"x": row}, {}) for n, row in enumerate(rows, 1)]


def perturbed(source, out, share):
    """The model with noise on its weights: `share` of each weight's own spread."""
    model = onnx_files.load(source)
    generator = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size > 1:
            noise = generator.standard_normal(values.shape) * values.std() * share
            tensor.CopyFrom(onnx.numpy_helper.from_array((values + noise).astype(np.float32), tensor.name))
    onnx_files.save(model, out)
    return out


@pytest.fixture
def layers(tmp_path):
    """A small classifier as an ONNX file, and its reference on twelve samples."""
    original = graphs.write(tmp_path / "original", graphs.layers())
    cases.save(answered(original, drawn()), tmp_path / "reference")
    return original


def validate(built, tmp_path, step=None):
    step = step or Validate()
    out = tmp_path / "validated"
    report = step.run(out, compiled=built, reference=tmp_path / "reference", checkpoint=tmp_path / "original")
    return report, out


def test_the_same_model_passes_and_comes_out_unchanged_as_links(layers, tmp_path):
    report, out = validate(layers, tmp_path)
    Validate().judge(report)
    assert report.cases == 12
    assert report.kinds == {"sample": 12}
    assert report.random is False
    assert report.cosine.worst == pytest.approx(1)
    assert report.max_abs.worst == 0
    assert report.agreement == Agreement(share=1, differ=(), choices=12)
    assert report.bytes == (layers / "model.onnx").stat().st_size
    assert (out / "model.onnx").samefile(layers / "model.onnx")


def test_a_broken_model_names_the_worst_sample_its_text_and_by_how_much(layers, tmp_path):
    report, _ = validate(perturbed(layers, tmp_path / "broken", 1.0), tmp_path)
    with pytest.raises(JudgementError) as caught:
        Validate().judge(report)
    text = str(caught.value)
    worst = report.cosine
    assert f"cosine {worst.worst:.6g} is below at_least 0.9999 by" in text
    assert f'sample {worst.sample} "text number' in text
    assert "the error as a share of the output's largest value" in text
    assert f"agreement with near ties {report.agreement.with_near_ties:.6g} is below" in text
    assert "differing: line" in text
    assert caught.value.exit == 4


def test_a_bound_of_the_recipe_takes_the_place_of_the_default_on_either_side(layers, tmp_path):
    report, _ = validate(perturbed(layers, tmp_path / "broken", 0.02), tmp_path)
    with pytest.raises(JudgementError):
        Validate().judge(report)
    Validate(cosine=Bound(at_least=0.5), agreement=Bound(at_least=0.1), max_abs=Bound(at_most=100)).judge(report)
    lenient = {"cosine": Bound(at_least=0), "agreement": Bound(at_least=0)}
    with pytest.raises(JudgementError, match=r"max_abs .* is above at_most 1e-06 by .*, sample line"):
        Validate(**lenient, max_abs=Bound(at_most=1e-6)).judge(report)


def test_outputs_that_are_not_finite_fail_clearly(layers, tmp_path):
    model = onnx_files.load(layers)
    model.graph.initializer[1].CopyFrom(
        onnx.numpy_helper.from_array(np.full(128, np.nan, np.float32), model.graph.initializer[1].name)
    )
    onnx_files.save(model, tmp_path / "nan")
    report, _ = validate(tmp_path / "nan", tmp_path)
    with pytest.raises(JudgementError, match="not finite") as caught:
        Validate().judge(report)
    assert "in 12 cases: line 1, line 2" in str(caught.value)


@pytest.mark.parametrize("kind", ["sample", "tensors"])
def test_labelled_samples_give_an_accuracy_beside_the_original_s(layers, tmp_path, kind):
    right = [replace(case, label=int(case.outputs["y"].argmax())) for case in answered(layers, drawn(kind=kind))]
    wrong = replace(right[0], label=(right[0].label + 1) % 4)
    cases.save([wrong, *right[1:]], tmp_path / "reference")
    report, _ = validate(layers, tmp_path)
    share = pytest.approx(11 / 12)
    assert report.metric == MetricReport(name="accuracy", value=share, original=share, samples=12)
    Validate(metric=Metric(at_least=0.9)).judge(report)
    with pytest.raises(JudgementError, match=r"accuracy 0.916667 is below at_least 0.95 by 0.0333 \(the original"):
        Validate(metric=Metric(at_least=0.95)).judge(report)


def test_a_metric_without_labels_says_what_is_missing(layers, tmp_path):
    report, _ = validate(layers, tmp_path)
    with pytest.raises(JudgementError, match="could not be measured") as caught:
        Validate(metric=Metric(at_least=0.9)).judge(report)
    assert "no sample has a label" in str(caught.value)
    assert "take validate.metric out, or add samples" in str(caught.value)


def test_an_agreement_that_is_missed_although_nothing_differs_lists_nothing(layers, tmp_path):
    report, _ = validate(layers, tmp_path)
    with pytest.raises(JudgementError) as caught:
        Validate(agreement=Bound(at_least=1.5)).judge(report)
    assert "agreement 1 is below at_least 1.5 by 0.5" in str(caught.value)
    assert "differing" not in str(caught.value)


@pytest.mark.parametrize(
    ("precision", "hint", "missing"),
    [
        ("fp32", "no precision is higher than fp32", "choose a higher"),
        ("int8", "choose a higher precision", "than fp32"),
    ],
)
def test_a_higher_precision_is_advised_only_where_there_is_one(precision, hint, missing):
    report = replace(MEASURED, cosine=Worst(1, 1, "line 1", ""))
    with pytest.raises(JudgementError, match=r"cosine .* is below at_least 1.5") as caught:
        Validate(precision=precision, cosine=Bound(at_least=1.5)).judge(report)
    assert hint in str(caught.value)
    assert missing not in str(caught.value)
    with pytest.raises(JudgementError) as caught:
        Validate(precision=precision).judge(replace(MEASURED, nonfinite=("line 1",)))
    assert ("try fp32" in str(caught.value)) is (precision != "fp32")


def test_random_tensors_are_said_to_be_random(layers, tmp_path, capsys):
    cases.save(answered(layers, drawn(kind="random")), tmp_path / "reference")
    report, _ = validate(perturbed(layers, tmp_path / "broken", 1.0), tmp_path)
    assert report.random is True
    assert "random tensors" in capsys.readouterr().out
    with pytest.raises(JudgementError) as caught:
        Validate().judge(report)
    assert "the inputs are random tensors" in str(caught.value)


def test_an_output_that_the_built_model_lacks_is_an_error_of_the_step(layers, tmp_path):
    model = onnx_files.load(layers)
    model.graph.node[-1].output[0] = model.graph.output[0].name = "z"
    onnx_files.save(model, tmp_path / "renamed")
    with pytest.raises(StepError, match="no output y"):
        validate(tmp_path / "renamed", tmp_path)


def test_bounds_and_precision_are_judged_and_no_part_of_the_key_but_what_a_package_joins_is():
    one = Validate(precision="int8", cosine=Bound(at_least=0.9), asks_to_join=("dynamic_batching",))
    plain = {"task": None, "execution": Execution().model_dump(mode="json"), "opt": {}}
    assert one.options() == Validate().options() == {**plain, "least_in_batch": 0.999999}
    recipe = Recipe(name="m", model=ModelSection(source="m.onnx"), precision="int8")
    assert Validate.for_recipe(recipe).least_in_batch == 0.98


ALIKE, OTHER = Worst(1, 1, "line 1", ""), Worst(0.9, 0.95, "line 2", "")
MEASURED = AccuracyReport(cases=3, kinds={"sample": 3}, random=False)
ALONE = replace(MEASURED, in_batch=OTHER, in_equal_batch=OTHER)
BY_LENGTH = replace(MEASURED, in_batch=OTHER, in_equal_batch=ALIKE)


@pytest.mark.parametrize(
    ("report", "joins"),
    [
        (MEASURED, RowBatching.TOGETHER),
        (replace(MEASURED, in_batch=ALIKE, in_equal_batch=ALIKE), RowBatching.TOGETHER),
        (BY_LENGTH, RowBatching.EQUAL_LENGTHS),
        (ALONE, RowBatching.ALONE),
        (replace(MEASURED, joins_no_rows="y has the shape [4, 4] for 2 rows"), RowBatching.ALONE),
    ],
)
def test_a_package_joins_the_rows_that_are_answered_alike(report, joins):
    assert Validate().batching(report, 0.98) is joins
    Validate().judge(report)  # a recipe that asks for no batches gets a package without them


@pytest.mark.parametrize("asks", [{"asks_to_join": ("max_batch_size: 4",)}, {"asks_to_mix": ("layout: fused",)}])
def test_a_recipe_that_asks_for_batches_of_rows_that_depend_on_each_other_fails(asks):
    with pytest.raises(JudgementError, match="depends on the rows beside it") as caught:
        Validate(**asks).judge(ALONE)
    assert "likeness 0.9" in str(caught.value)
    assert "the bound (validate.in_batch): 0.999999" in str(caught.value)
    Validate(in_batch=Bound(at_least=0.8), **asks).judge(ALONE)


def test_equal_lengths_may_be_joined_but_not_padded():
    Validate(asks_to_join=("dynamic_batching",)).judge(BY_LENGTH)
    with pytest.raises(JudgementError, match="padding: buckets"):
        Validate(asks_to_mix=("padding: buckets",)).judge(BY_LENGTH)


def test_the_fields_of_a_recipe_that_ask_for_batches():
    def asks(**triton):
        recipe = Recipe(name="m", model=ModelSection(source="m.onnx"), package={"triton": triton})
        return Validate.for_recipe(recipe).asks_to_join

    assert asks() == asks(max_batch_size=1) == asks(max_batch_size=0) == ()
    assert asks(max_batch_size=4) == ("max_batch_size: 4",)
    assert asks(dynamic_batching={}) == ("dynamic_batching",)
    package = {"triton": {"layout": "fused", "padding": "buckets"}, "answers": {"doc_stride": 16}}
    recipe = Recipe(name="m", model=ModelSection(source="m.onnx"), package=package)
    assert Validate.for_recipe(recipe).asks_to_mix == ("layout: fused", "padding: buckets", "doc_stride: 16")
    assert Validate.for_recipe(Recipe(name="m", model=ModelSection(source="m.onnx"))).asks_to_mix == ()


def test_a_bound_on_the_agreement_is_on_equal_choices_and_the_default_lets_near_ties_pass():
    ties = Agreement(share=0.83, differ=("line 1",), choices=100, near_ties=17, gap="gaps of at most 5%")
    report = replace(MEASURED, agreement=ties)
    Validate(precision="fp32").judge(report)
    with pytest.raises(JudgementError, match=r"agreement 0\.83 is below at_least 0\.9"):
        Validate(precision="fp32", agreement=Bound(at_least=0.9)).judge(report)


def test_an_input_with_a_default_value_that_the_built_model_lacks_is_in_the_notes(tmp_path):
    def scaled(name, inputs):
        text = f"({inputs}) => (float[batch, 64] y) {{ y = Mul(x, factor) }}"
        return graphs.write(tmp_path / name, graphs.parsed(text, factor=np.array([2], np.float32)))

    original = scaled("original", "float[batch, 64] x, float[1] factor")
    cases.save(answered(original, drawn()), tmp_path / "reference")
    steps = {"reference": tmp_path / "reference", "checkpoint": original}
    assert Validate().run(tmp_path / "same", compiled=original, **steps).notes == ()
    built = scaled("built", "float[batch, 64] x")
    [note] = Validate().run(tmp_path / "other", compiled=built, **steps).notes
    assert note == "the input factor always has its default value: the built model does not take it"


def test_a_tensorrt_recipe_is_validated_on_its_gpu():
    recipe = Recipe(
        name="m",
        model=ModelSection(source="hf:a/b"),
        target=TargetSection(device="T4", runtime="tensorrt"),
        precision="fp16",
    )
    step = Validate.for_recipe(recipe)
    assert str(step.hardware()) == "T4 (sm_75) with tensorrt"
    assert "tensorrt" in step.tools_used()
    assert {"device.name", "cuda.runtime", "gpu.driver"} <= set(step.facts_used())
    assert "cpu.isa" not in step.facts_used()
    assert Validate().hardware() is None
