"""`runtime: auto`: which runtimes are measured, and what the jobs of such a recipe depend on."""

import pytest

from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.runtimes import registry
from engine.runtimes.auto import choice
from engine.runtimes.execution import Execution


def recipe(runtime="auto", device="cpu"):
    return Recipe(
        name="m", model=ModelSection(source="hf:a/b"), precision="int8",
        target=TargetSection(device=device, runtime=runtime),
    )  # fmt: skip


AUTO = registry.find("auto")
EXECUTION = Execution.for_recipe(recipe())


def test_on_a_cpu_onnxruntime_is_the_default_and_openvino_is_measured_beside_it():
    assert AUTO.candidates(recipe().target) == ("onnxruntime", "openvino")
    assert AUTO.candidates(recipe(device="T4").target) == ()


def test_candidates_are_runtimes_of_their_own():
    for name in AUTO.candidates(recipe().target):
        assert registry.find(name).candidates(recipe().target) == ()


@pytest.mark.parametrize("name", AUTO.candidates(recipe().target))
def test_the_chosen_runtime_runs_the_model_as_if_the_recipe_named_it(tmp_path, name):
    choice.write(tmp_path, name)
    assert EXECUTION.of_model(tmp_path) == Execution.for_recipe(recipe(name))


def test_a_runtime_that_is_named_needs_no_choice(tmp_path):
    named = Execution.for_recipe(recipe("onnxruntime"))
    assert named.of_model(tmp_path) is named


@pytest.mark.parametrize("name", AUTO.candidates(recipe().target))
def test_everything_that_a_candidate_depends_on_is_a_dependency(name):
    own = Execution.for_recipe(recipe(name))
    assert set(EXECUTION.tools) >= set(own.tools)
    assert set(EXECUTION.facts) >= set(own.facts)
    assert set(EXECUTION.code) >= set(own.code)
    assert set(EXECUTION.code_to_serve) >= set(own.code_to_serve)
    assert set(AUTO.package_tools()) >= set(own.by.package_tools())
    assert set(AUTO.latency_facts(EXECUTION)) >= set(own.by.latency_facts(own))


def test_the_code_that_reads_the_choice_is_a_dependency():
    assert choice.__name__ in EXECUTION.code
    assert choice.__name__ in EXECUTION.code_to_serve
