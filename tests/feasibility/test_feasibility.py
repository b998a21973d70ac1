"""Recipes that hardware or model cannot fulfil are refused before a build, with the nearest thing that works."""

from dataclasses import replace

import pytest

from engine import feasibility
from engine.errors import RecipeError
from engine.feasibility.facts import ModelFacts
from engine.recipe.load import load
from engine.recipe.values import Range

TEXT = ModelFacts.from_json(
    {
        "kind": "transformers",
        "parameters": 22_000_000,
        "bytes": 90_000_000,
        "max_sequence": 512,
        "axes": {"input_ids": ["batch", "sequence"], "attention_mask": ["batch", "sequence"]},
    }
)
IMAGE = ModelFacts(kind="onnx", parameters=1, bytes=4, axes={"pixels": ("N", 3, "H", "W")})
FIXED = ModelFacts(kind="onnx", parameters=1, bytes=4, axes={"pixels": (1, 3, 224, 224)})


@pytest.fixture
def recipe(tmp_path):
    def loaded(rest, device="T4", runtime="tensorrt"):
        target = f"target: {{device: {device}, runtime: {runtime}}}"
        path = tmp_path / "r.yaml"
        path.write_text(f"name: tiny\nmodel: {{source: 'hf:a/b'}}\n{target}\n{rest}\n")
        (one,) = load(path)
        return one

    return loaded


def refused(check, *arguments):
    with pytest.raises(RecipeError) as caught:
        check(*arguments)
    assert caught.value.position.line > 0
    return caught.value


def test_hardware_comes_before_what_is_not_supported_yet(recipe):
    assert "cannot compute in bf16" in refused(feasibility.check, recipe("precision: bf16")).what
    assert "not supported yet" in refused(feasibility.check, recipe("preprocess: {size: 384}", "A10")).what
    assert (
        "no cpu is built for in fp8" in refused(feasibility.check, recipe("precision: fp8", "cpu", "onnxruntime")).what
    )


def test_an_onnx_file_with_open_axes_needs_a_profile_and_gets_a_proposal(recipe):
    error = refused(feasibility.check_model, recipe(""), IMAGE)
    assert error.facts == ("its axes of any size: N, H, W",)
    assert error.hint == "add profiles: [{N: [1, 1, 8], H: [224, 224, 448], W: [224, 224, 448]}]"
    text = replace(TEXT, kind="onnx", max_sequence=None)
    hint = refused(feasibility.check_model, recipe(""), text).hint
    assert hint == "add profiles: [{batch: [1, 1, 8], sequence: [1, 128, 512]}]"


def test_fixed_axes_need_no_mention(recipe):
    feasibility.check_model(recipe(""), FIXED)
    assert "no axis `N`" in refused(feasibility.check_model, recipe("profiles: [{N: 1}]"), FIXED).what


def test_a_text_model_without_profiles_has_one_within_its_positions(recipe):
    (profile,) = feasibility.profiles(recipe(""), replace(TEXT, max_sequence=64))
    assert profile == {"batch": Range(min=1, opt=1, max=8), "sequence": Range(min=1, opt=64, max=64)}
    assert feasibility.profiles(recipe("").recipe, IMAGE) == ()
    loaded = recipe("profiles: [{batch: 1, sequence: 2}]")
    assert feasibility.profiles(loaded, TEXT) == loaded.recipe.profiles


def test_a_model_larger_than_the_gpu_is_refused_by_what_its_precision_takes(recipe):
    large = replace(TEXT, parameters=7_000_000_000)
    feasibility.check_model(recipe("precision: fp16"), large)
    error = refused(feasibility.check_model, recipe("precision: fp32"), large)
    assert error.what == "the model's weights take 26.1 GiB in fp32: more than the GPU's memory"
    assert error.facts == ("the T4 has 16 GiB",)
    feasibility.check_model(recipe("precision: fp32", "cpu", "onnxruntime"), large)


def test_a_report_that_says_nothing_of_axes_is_no_reason_to_refuse(recipe):
    feasibility.check_model(recipe("profiles: [{anything: 1}]"), ModelFacts(kind="timm"))


def test_threads_are_of_models_on_a_cpu(recipe):
    error = refused(feasibility.check, recipe("package: {triton: {threads: 2}}"))
    assert "on a CPU" in error.what
    feasibility.check(recipe("package: {triton: {threads: 2}}", "cpu", "onnxruntime"))
    feasibility.check(recipe("package: {triton: {threads: 2}}", "cpu", "openvino"))


@pytest.mark.parametrize(
    ("fields", "where", "says"),
    [
        ("layout: fused", ("cpu", "openvino"), "this is openvino on cpu"),
        ("layout: fused", ("T4", "tensorrt"), "this is tensorrt on T4"),
        ("layout: fused", ("cpu", "auto"), "this is openvino on cpu"),
        ("layout: auto", ("T4", "tensorrt"), "this is tensorrt on T4"),
        ("layout: auto, tokenizer: false", ("cpu", "onnxruntime"), "a package without a tokenizer"),
        ("layout: auto, models: {tokenizer: {}}", ("cpu", "onnxruntime"), "fields for models of its own"),
        (
            "layout: fused, optimization: {priority: PRIORITY_MAX}",
            ("cpu", "onnxruntime"),
            "a package with optimization",
        ),
    ],
)
def test_one_python_model_is_for_texts_in_onnx_runtime(recipe, fields, where, says):
    error = refused(feasibility.check, recipe(f"package: {{triton: {{{fields}}}}}", *where))
    assert says in error.what
    assert "layout: ensemble" in error.hint


@pytest.mark.parametrize("layout", ["fused", "auto"])
def test_on_a_gpu_one_python_model_is_for_the_cuda_provider(recipe, layout):
    loaded = recipe(f"package: {{triton: {{layout: {layout}}}}}", "T4", "onnxruntime")
    providers = {name: loaded.recipe.target.model_copy(update={"provider": name}) for name in ("cuda", "tensorrt")}
    by = {
        name: loaded._replace(recipe=loaded.recipe.model_copy(update={"target": target}))
        for name, target in providers.items()
    }
    feasibility.check(by["cuda"])
    error = refused(feasibility.check, by["tensorrt"])
    assert "this is onnxruntime on T4 by provider: tensorrt" in error.what
    assert "provider: cuda" in error.hint


@pytest.mark.parametrize("task", ["text-generation", "image-classification"])
def test_one_python_model_is_for_answers_of_one_pass(recipe, task):
    loaded = recipe("package: {triton: {layout: fused}}", "cpu", "onnxruntime")
    model = loaded.recipe.model.model_copy(update={"task": task})
    loaded = loaded._replace(recipe=loaded.recipe.model_copy(update={"model": model}))
    assert f"a package for {task}" in refused(feasibility.check, loaded).what


def test_the_faster_layout_goes_with_every_runtime_of_a_cpu(recipe):
    for runtime in ("auto", "openvino"):
        feasibility.check(recipe("package: {triton: {layout: auto}}", "cpu", runtime))
    feasibility.check(recipe("package: {triton: {layout: fused}}", "cpu", "onnxruntime"))


@pytest.mark.parametrize(
    ("more", "task", "says"),
    [
        (
            "profiles: [{batch: 4, sequence: 16}]\npackage: {triton: {padding: auto, tokenizer: false}}",
            None,
            "no texts",
        ),
        ("profiles: [{batch: 4}]\npackage: {triton: {padding: buckets}}", "image-classification", "does not pad texts"),
        ("profiles: [{batch: 4}]\npackage: {triton: {padding: buckets}}", "text-generation", "does not pad texts"),
        ("package: {triton: {padding: buckets}}", None, "the recipe has none"),
    ],
)
def test_padding_is_for_texts_and_the_sizes_in_the_profiles(recipe, more, task, says):
    loaded = recipe(more, "cpu", "onnxruntime")
    model = loaded.recipe.model.model_copy(update={"task": task})
    loaded = loaded._replace(recipe=loaded.recipe.model_copy(update={"model": model}))
    assert says in refused(feasibility.check, loaded).what


def test_options_of_answers_are_of_one_task(recipe):
    loaded = recipe("package: {answers: {aggregation_strategy: max}}", "cpu", "onnxruntime")
    facts = replace(TEXT, task="text-classification")
    assert "text-classification has no aggregation_strategy" in refused(feasibility.check_model, loaded, facts).what
    feasibility.check_model(loaded, replace(TEXT, task="token-classification"))
    loaded = recipe("package: {answers: {doc_stride: 16}}", "cpu", "onnxruntime")
    assert "need one Python model" in refused(feasibility.check, loaded).what
    feasibility.check(recipe("package: {triton: {layout: fused}, answers: {doc_stride: 16}}", "cpu", "onnxruntime"))
    loaded = recipe(
        "package: {triton: {postprocess: false}, answers: {aggregation_strategy: max}}", "cpu", "onnxruntime"
    )
    assert "the package makes none" in refused(feasibility.check, loaded).what
