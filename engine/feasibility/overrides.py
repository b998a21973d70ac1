"""What a recipe overrides in Triton's configuration, refused at its place before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.feasibility import triton
from engine.feasibility.facts import ModelFacts
from engine.feasibility.triton import known
from engine.feasibility.triton.fault import About, Fault
from engine.runtimes import triton_images
from engine.text import suggestions

if TYPE_CHECKING:
    from engine.errors import RecipeError
    from engine.recipe.load import LoadedRecipe

_LATER = (("model_metrics",), ("ensemble_scheduling", "max_inflight_requests"))
_LAST_WITHOUT = "24.10"
"""The last release of which it is known that its model_config.proto (tritonclient 2.51) lacks these fields."""


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for an override that Triton would refuse, as far as the recipe alone can tell."""
    for part, path, overrides in known.sections(loaded.recipe):
        if part != "model":
            _there(loaded, part, path)
        _hold(loaded, path, overrides, known.of_recipe(loaded.recipe, part))
        _known_to_image(loaded, path, overrides)


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for an override that does not fit the model, by the report of its fetch."""
    about = known.of_model(loaded.recipe, facts)
    if about is None:
        return
    _free(loaded, facts.axes)
    for part, path, overrides in known.sections(loaded.recipe):
        if part == "model":
            _hold(loaded, path, overrides, about)


def _known_to_image(loaded: LoadedRecipe, path: tuple[str | int, ...], overrides: Mapping[str, Any]) -> None:
    """Refuse fields that the Triton of the recipe's image does not know: it would not read the configuration."""
    named = triton_images.read(loaded.recipe.package.triton.image or "")
    for field in _LATER if named is not None and named.release <= _LAST_WITHOUT else ():
        said: Any = overrides
        for segment in field:
            said = said.get(segment) if isinstance(said, Mapping) else None
        if said is not None and named is not None:
            what = f"Triton {named.release} has no `{field[-1]}` yet"
            hint = f"leave it out, or use an image later than {_LAST_WITHOUT}"
            raise loaded.error(what, *path, *field, hint=hint, at_key=True)


def _free(loaded: LoadedRecipe, axes: Mapping[str, Sequence[int | str]]) -> None:
    """Refuse batches of a model whose first axes are not free."""
    asked = loaded.recipe.package.triton.max_batch_size
    for name, shape in axes.items():
        if asked and not (shape and isinstance(shape[0], str)):
            what = f"the model takes no batches of {asked}: the first axis of its input {name} is not free"
            facts = [f"{name}: {' x '.join(map(str, shape)) or 'a number'}"]
            raise loaded.error(what, "package", "triton", "max_batch_size", facts=facts, hint="use max_batch_size: 0")


def _hold(loaded: LoadedRecipe, path: tuple[str | int, ...], overrides: Mapping[str, Any], about: About) -> None:
    try:
        triton.check(overrides, about)
    except Fault as fault:
        raise _error(loaded, path, fault) from None


def _error(loaded: LoadedRecipe, path: tuple[str | int, ...], fault: Fault) -> RecipeError:
    return loaded.error(fault.what, *path, *fault.path, facts=fault.facts, hint=fault.hint, at_key=fault.at_key)


def _there(loaded: LoadedRecipe, part: str, path: tuple[str | int, ...]) -> None:
    """Refuse the overrides of a model that the package will not hold."""
    said, task = loaded.recipe.package.triton, loaded.recipe.model.task
    if part == "tokenizer" and not said.tokenizer:
        what, hint = "the package has no tokenizer: the recipe says tokenizer: false", "leave one of them out"
        raise loaded.error(what, *path, hint=hint, at_key=True)
    have = tasks.find(task).parts if task is not None else None
    if have is not None and part not in have:
        what = f"a package for {task} has no model `{part}`"
        raise loaded.error(what, *path, hint=suggestions.hint(part, have), at_key=True)
