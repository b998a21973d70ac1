"""`runtime: auto`: which runtimes are measured, and what the jobs of such a recipe depend on."""

import pytest

from engine.recipe.schema import ModelSection, PackageSection, Recipe, TargetSection
from engine.runtimes import choice, registry
from engine.runtimes.execution import Execution

TENSORRT = {"version": "10.x"}


def recipe(runtime="auto", device="cpu", precision="int8", **fields):
    return Recipe(
        name="m", model=ModelSection(source="hf:a/b"), precision=precision,
        target=TargetSection(device=device, runtime=runtime), **fields,
    )  # fmt: skip


def on_a_t4(runtime="auto"):
    return recipe(runtime, "T4", "fp16", tensorrt=TENSORRT)


AUTO = registry.find("auto")
EXECUTION = Execution.for_recipe(recipe())
ON_A_T4 = Execution.for_recipe(on_a_t4())


def test_on_a_cpu_onnxruntime_is_the_default_and_openvino_is_measured_beside_it():
    assert AUTO.candidates(recipe()) == ("onnxruntime", "openvino")
    assert [registry.find(name).candidates(recipe()) for name in AUTO.candidates(recipe())] == [(), ()]


@pytest.mark.parametrize(
    ("auto", "name"), [(each, name) for each in (recipe(), on_a_t4()) for name in AUTO.candidates(each)]
)
def test_the_chosen_runtime_runs_the_model_as_if_the_recipe_named_it(tmp_path, auto, name):
    choice.write(tmp_path, name)
    named = Execution.for_recipe(auto.as_run_by(name))
    assert Execution.for_recipe(auto).of_model(tmp_path) == named
    assert named.of_model(tmp_path / "without a choice") is named


def test_on_a_gpu_tensorrt_is_a_candidate_of_a_recipe_that_names_its_version():
    assert "tensorrt" not in AUTO.candidates(recipe(device="T4", precision="fp16"))
    assert AUTO.candidates(on_a_t4()) == ("onnxruntime", "inductor", "tensorrt")


@pytest.mark.parametrize(
    "fields",
    [
        {"precision": "int8"},
        {"model": ModelSection(source="model.onnx")},
        {"package": PackageSection.model_validate({"triton": {"image": "nvcr.io/nvidia/tritonserver:25.06-py3"}})},
    ],
    ids=["int8", "an ONNX file", "an image before 26.05"],
)
def test_on_a_gpu_inductor_is_no_candidate_where_it_cannot_have_the_model(fields):
    assert "inductor" in AUTO.candidates(on_a_t4())
    assert AUTO.candidates(on_a_t4().model_copy(update=fields)) == ("onnxruntime", "tensorrt")


def test_on_a_gpu_onnx_runtime_computes_with_the_cuda_provider_and_reads_nothing_under_tensorrt():
    assert ON_A_T4.by.graphed(ON_A_T4).runtime == "onnxruntime", "it may run in a CUDA graph"
    assert EXECUTION.by.graphed(EXECUTION) is None
    view = on_a_t4().as_run_by("onnxruntime")
    assert (view.target.provider, view.tensorrt) == ("cuda", {})
    assert ON_A_T4.options == {"onnxruntime": {"provider": "cuda"}, "inductor": {}, "tensorrt": {"cuda_graph": False}}


def test_a_job_on_a_gpu_needs_the_packages_of_all_candidates_and_says_so():
    hardware = ON_A_T4.needs
    assert hardware.tools == ("onnxruntime-gpu", "torch", "tensorrt")
    assert str(hardware) == "T4 (sm_75) with onnxruntime-gpu and torch and tensorrt 10.x"
    assert hash(hardware) != hash(Execution.for_recipe(on_a_t4().as_run_by("tensorrt")).needs)
    assert set(ON_A_T4.tools) == {"numpy", "onnxruntime-gpu", "torch", "tensorrt"}


def test_a_job_on_a_cpu_does_not_depend_on_the_code_of_runtimes_for_gpus():
    assert not any(".tensorrt" in module for module in (*EXECUTION.code, *EXECUTION.code_to_serve))
    assert any(".tensorrt" in module for module in ON_A_T4.code)
    assert choice.__name__ in EXECUTION.code, "the choice is read"
    assert choice.__name__ in EXECUTION.code_to_serve


@pytest.mark.parametrize("name", AUTO.candidates(recipe()))
def test_everything_that_a_candidate_depends_on_is_a_dependency(name):
    own = Execution.for_recipe(recipe(name))
    assert set(EXECUTION.tools) >= set(own.tools)
    assert set(EXECUTION.facts) >= set(own.facts)
    assert set(EXECUTION.code) >= set(own.code)
    assert set(EXECUTION.code_to_serve) >= set(own.code_to_serve)
    assert set(EXECUTION.package_tools) >= set(own.by.package_tools())
    assert set(AUTO.latency_facts(EXECUTION)) >= set(own.by.latency_facts(own))


def test_weights_alone_are_those_of_every_candidate():
    assert AUTO.weights_only(recipe(quantize={"weights_only": True}))
    assert not AUTO.weights_only(recipe())
