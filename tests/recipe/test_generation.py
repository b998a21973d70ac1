"""Recipes that cannot generate text: the error has a place and a hint."""

from dataclasses import replace

import pytest

from engine import feasibility
from engine.errors import RecipeError
from engine.feasibility.facts import ModelFacts

MODEL = "name: r\nmodel: {source: model}\n"
AXES = {"input_ids": ["batch", "sequence"], "attention_mask": ["batch", "sequence"]}
GPT2 = ModelFacts(task="text-generation", max_sequence=64, axes=AXES, kind="transformers", parameters=10)


def refusal(project, text, **facts):
    with pytest.raises(RecipeError) as caught:
        feasibility.check_model(project.one(MODEL + text), replace(GPT2, **facts))
    return caught.value


@pytest.mark.parametrize(
    "text",
    ["target: {device: T4, runtime: tensorrt}", "target: {device: L4}", "target: {device: A100, provider: cuda}"],
)
def test_generating_on_a_gpu_is_refused_once_the_model_is_known(project, text):
    error = refusal(project, text)
    assert "not supported yet: generating text on a GPU; the model is for text-generation" in str(error)
    assert error.hint == "use device: cpu with runtime: onnxruntime"


def test_measuring_it_through_a_server_is_refused_once_the_model_is_known(project):
    error = refusal(project, "bench: {via: [in-process, triton-grpc], shapes: [{batch: 1, sequence: 8}]}")
    assert "measuring generated text through a server; the model is for text-generation" in str(error)
    assert error.hint == "use via: [in-process]"


@pytest.mark.parametrize("task", ["text-classification", None])
def test_how_text_is_generated_is_never_ignored(project, task):
    error = refusal(project, "generate: {max_new_tokens: 8}", task=task)
    assert str(error.position) == "recipe.yaml:3:11"
    assert (f"the model is for {task}" if task else "the model does not say that") in str(error)


@pytest.mark.parametrize("task", ["text-classification", "text2text-generation", None])
def test_the_perplexity_of_a_model_that_continues_no_text_is_refused_once_it_is_known(project, task):
    error = refusal(project, "validate: {perplexity: {text: recipe.yaml}}", task=task)
    assert str(error.position) == "recipe.yaml:3:24"
    assert "perplexity is for models that continue a text, and the model" in str(error)


def test_an_answer_has_room_in_the_model(project):
    error = refusal(project, "generate: {max_new_tokens: 64}")
    assert "64 new tokens are more than the model has positions for: 64" in str(error)
    assert error.hint == "at most 63 is possible"


def test_a_measured_prompt_has_room_for_its_answer(project):
    profile = "profiles: [{batch: 1, sequence: [1, 8, 64]}]\n"
    text = f"{profile}bench: {{shapes: [{{batch: 1, sequence: 60}}]}}\ngenerate: {{max_new_tokens: 8}}"
    error = refusal(project, text)
    assert "60 tokens and 8 new ones are more than the model has positions for: 64" in str(error)
    assert "at most 56 tokens" in error.hint
    behind = replace(GPT2, task="text2text-generation")
    feasibility.check_model(project.one(MODEL + text), behind)  # the decoder's positions do not count the prompt
    feasibility.check_model(project.one(MODEL + text), replace(GPT2, max_sequence=None))


def test_the_past_is_no_axis_of_a_profile(project):
    error = refusal(project, "profiles: [{batch: 1, sequence: 8, past_sequence: 4}]")
    assert "the model has no axis `past_sequence`" in str(error)
    assert "its axes of any size: batch, sequence" in str(error)


def test_a_recipe_that_generates_on_a_cpu_passes(project):
    for text in ("", "generate: {max_new_tokens: 8, num_beams: 1}", "precision: int8"):
        feasibility.check_model(project.one(MODEL + text + "\nprofiles: [{batch: 1, sequence: [1, 8, 32]}]"), GPT2)
