"""Text generation: refuses models, targets and lengths with which no text can be generated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import tasks
from engine.feasibility.facts import ModelFacts
from engine.recipe import supported
from engine.runtimes import recipes
from engine.tasks import Generates

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for `generate` without a generating model, or for text that target or model cannot generate."""
    recipe = loaded.recipe
    task = recipe.model.task or facts.task
    _perplexity(loaded, task)
    if task is None or not tasks.generates(task):
        if recipe.generate:
            model_is = f"is for {task}" if task else "does not say that it is for generating text"
            hint = "take `generate` out; or say `task:` under `model:`, if that is what the model is for"
            what = f"the recipe says how text is generated, and the model {model_is}"
            raise loaded.error(what, "generate", hint=hint)
        return
    if supported.off_the_cpu(recipe):
        what = f"not supported yet: generating text {supported.where(recipe)}; the model is for {task}"
        raise loaded.error(what, "target", hint=f"use {supported.ON_A_CPU}")
    if recipes.served(recipe):
        what = f"not supported yet: measuring generated text through a server; the model is for {task}"
        raise loaded.error(what, "bench", "via", hint="use via: [in-process]")
    _room(loaded, task, facts.max_sequence)


def _perplexity(loaded: LoadedRecipe, task: str | None) -> None:
    """Raise RecipeError where perplexity is measured of a model that does not continue texts."""
    if loaded.recipe.validation.perplexity is None:
        return
    if task is None or tasks.find(task).generates is not Generates.CONTINUES:
        model_is = f"is for {task}" if task else "does not say that it continues texts"
        what = f"perplexity is for models that continue a text, and the model {model_is}"
        hint = "take `perplexity` out; or say `task:` under `model:`, if that is what the model is for"
        raise loaded.error(what, "validate", "perplexity", hint=hint)


def _room(loaded: LoadedRecipe, task: str, longest: int | None) -> None:
    """Raise RecipeError where a text would have more tokens than the model has positions.

    In a model that continues a text, the prompt and the new tokens together must fit into the model's positions.
    """
    new = loaded.recipe.generate.get("max_new_tokens")
    if longest is None:
        return
    if new is not None and new >= longest:
        what = f"{new} new tokens are more than the model has positions for: {longest}"
        raise loaded.error(what, "generate", "max_new_tokens", hint=f"at most {longest - 1} is possible")
    one_row = tasks.find(task).generates is Generates.CONTINUES
    shapes = loaded.recipe.bench.shapes if loaded.recipe.bench and one_row else ()
    for index, shape in enumerate(shapes):
        new_tokens = tasks.MEASURED if new is None else new
        prompt = shape.axes.get("sequence", 1)
        if prompt <= longest < prompt + new_tokens:
            tokens = f"a prompt of {prompt} tokens and {new_tokens} new ones"
            what = f"{tokens} are more than the model has positions for: {longest}"
            hint = f"measure at most {max(longest - new_tokens, 1)} tokens, or lower generate.max_new_tokens"
            raise loaded.error(what, "bench", "shapes", index, "sequence", hint=hint)
