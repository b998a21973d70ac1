"""The graph that a GPU is to run is held against the original before anything is compiled."""

import graphs
import numpy as np
import onnx
import pytest

from engine.builder import jobs, registry
from engine.errors import JudgementError
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.kit.onnx import onnx_files
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.recipe.values import Bound
from engine.runtimes.onnxruntime import session as ort
from engine.steps.validate_onnx import ValidateOnnx


def recipe(precision="fp16", **target):
    model = ModelSection(source="model", task="text-classification")
    return Recipe(name="a", model=model, precision=precision, target=TargetSection(**target))


def planned(precision="fp16", **target):
    return {job.name: job for job in jobs.plan(recipe(precision, **target), registry.steps())}


@pytest.mark.parametrize("runtime", ["tensorrt", "tensorrt-rtx"])
def test_an_engine_is_built_only_of_a_checked_graph(runtime):
    plan = planned(device="T4", runtime=runtime)
    assert list(plan).index("quantize") < list(plan).index("validate-onnx") < list(plan).index("trt-prepare")
    assert plan["trt-prepare"].needs["checked"] == "validate-onnx"
    assert plan["validate-onnx"].needs == {"quantized": "quantize", "reference": "reference", "checkpoint": "fetch"}


def test_fp32_is_checked_too_and_a_cpu_needs_no_check():
    assert planned("fp32", device="A10", runtime="tensorrt")["validate-onnx"].needs["quantized"] == "shape-infer"
    assert "validate-onnx" not in planned("int8")


def test_neither_the_gpu_nor_the_runtime_is_an_option_of_what_is_made_on_any_machine():
    options = [
        planned(device=device, runtime=runtime)
        for device, runtime in (("T4", "tensorrt"), ("T4", "tensorrt-rtx"), ("A10", "tensorrt"))
    ]
    for name in ("quantize", "validate-onnx"):
        assert len({plan[name].step.model_dump_json() for plan in options}) == 1


@pytest.fixture
def lowered(tmp_path):
    """A classifier in fp16, with the reference of the original."""
    source = graphs.write(tmp_path / "original", graphs.layers())
    session = ort.session(source)
    rows = np.random.default_rng(5).standard_normal((12, 1, 64)).astype(np.float32)
    unanswered = [
        Case(f"line {number}", f"text {number}", "sample", {"x": row}, ort.run(session, {"x": row}))
        for number, row in enumerate(rows)
    ]
    cases.save(unanswered, tmp_path / "reference")
    graphs.in_half(source, tmp_path / "quantized")
    return tmp_path


def check(directory, step, model="quantized"):
    return step.run(
        directory / f"checked-{model}",
        quantized=directory / model,
        reference=directory / "reference",
        checkpoint=directory / "original",
    )


def test_it_measures_what_fp16_costs_and_hands_the_model_on_unchanged(lowered):
    step = ValidateOnnx(task="text-classification", precision="fp16")
    report = check(lowered, step)
    step.judge(report)
    assert report.emulated == "fp16"
    assert 0 < report.max_abs.worst < 0.1
    assert (lowered / "checked-quantized" / "model.onnx").samefile(lowered / "quantized" / "model.onnx")
    assert report.work.shares == {"fp16": 1.0}
    exact = check(lowered, step, "original")
    assert exact.emulated is None
    assert exact.max_abs.worst == 0
    with pytest.raises(JudgementError, match="Too little of the model computes in fp16"):
        step.judge(exact)


def test_the_distance_of_a_candidate_is_judged_on_the_device_and_its_multiplications_here(lowered):
    strict = ValidateOnnx(precision="fp16", cosine=Bound(at_least=0.9999999), precision_share=Bound(at_least=0.5))
    report = check(lowered, strict)
    with pytest.raises(JudgementError):
        strict.judge(report)
    candidate = strict.as_candidate()
    candidate.judge(report)
    assert candidate.options() == strict.options()
    with pytest.raises(JudgementError, match="precision_share"):
        candidate.model_copy(update={"precision_share": Bound(at_least=1.5)}).judge(report)


def test_a_recipe_with_candidates_checks_the_graph_of_each():
    plan = planned(device="T4", runtime="auto")
    assert [name for name in plan if name.startswith("validate-onnx")] == ["validate-onnx"]
    assert plan["validate-onnx"].step.candidate


def test_tf32_is_emulated_where_the_recipe_says_that_the_gpu_computes_in_it(lowered):
    plain, rounding = (ValidateOnnx(task="text-classification", tf32=tf32) for tf32 in (False, True))
    report = check(lowered, rounding, "original")
    assert report.emulated == "tf32"
    assert 0 < report.max_abs.worst < 0.1
    assert ("tf32" in plain.options(), rounding.options()["tf32"]) == (False, True)


@pytest.mark.parametrize(("tf32", "emulated"), [(None, False), (False, False), (True, True)])
def test_a_recipe_decides_whether_tf32_is_emulated(tf32, emulated):
    recipe = {"name": "a", "model": {"source": "model"}, "target": {"device": "A10", "runtime": "tensorrt"}}
    step = ValidateOnnx.for_recipe(Recipe.model_validate({**recipe, "tf32": tf32}))
    assert step is not None
    assert step.tf32 is emulated


def test_multiplications_are_counted_once_where_the_graph_states_the_precision():
    plan = jobs.plan(Recipe.model_validate({
        "name": "a", "model": {"source": "model", "task": "text-classification"}, "precision": "fp16",
        "target": {"device": "T4", "runtime": "tensorrt"}, "validate": {"precision_share": 0.9},
        "profiles": [{"batch": [1, 2, 4], "sequence": [8, 16, 32]}],
    }), registry.steps())  # fmt: skip
    graph, engine = (next(job.step for job in plan if job.name == name) for name in ("validate-onnx", "validate"))
    assert graph.precision_share == Bound(at_least=0.9)
    assert graph.opt == {"batch": 2, "sequence": 16}
    assert (engine.precision_share, engine.opt) == (None, {})


def test_what_overflows_on_a_gpu_is_refused_on_the_cpu(lowered):
    model = onnx_files.load(lowered / "quantized")
    (weight,) = (tensor for tensor in model.graph.initializer if tensor.name == "first_fp16")
    values = onnx.numpy_helper.to_array(weight) * np.float16(1e4)
    weight.CopyFrom(onnx.numpy_helper.from_array(values.astype(np.float16), weight.name))
    onnx_files.save(model, lowered / "large")
    step = ValidateOnnx(task="text-classification", precision="fp16")
    report = check(lowered, step, "large")
    with pytest.raises(JudgementError, match="not finite"):
        step.judge(report)


def test_the_bounds_of_the_recipe_hold_here_as_well(lowered):
    step = ValidateOnnx(task="text-classification", precision="fp16", max_abs=Bound(at_most=1e-9))
    with pytest.raises(JudgementError, match="max_abs"):
        step.judge(check(lowered, step))
