"""Takes hints literally: edits a recipe as the hint of an error says, as a user would."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

from engine.errors import UserError

_YAML = re.compile(r"(?:add|write|say|says|use) (\{.*\}|[a-z_]+: .*)$")
_MEANT = re.compile(r"did you mean `(?P<meant>.+)`\?")
_UNKNOWN = re.compile(r"the model has no (?:axis|input) `(?P<unknown>.+)`")
_BATCH = re.compile(r"(?:say|use) max_batch_size: (?P<size>\d+)")
_SAMPLES = re.compile(r"give samples \((?P<samples>.+)\)")
_MOST = 4


def until_it_works(recipe: dict[str, Any], run: Callable[[str], object]) -> list[UserError]:
    """Run a recipe, edit it as the hint of each error says, and return the errors in order.

    Raises AssertionError for a hint that cannot be taken literally, and where the error of one hint returns.
    """
    errors: list[UserError] = []
    for _ in range(_MOST):
        error = _error(run, yaml.safe_dump(recipe, sort_keys=False))
        if error is None:
            return errors
        assert error.what not in [before.what for before in errors], f"the hint did not help: {error}"
        errors.append(error)
        recipe = edited(recipe, error)
    raise AssertionError(f"the hints lead to no end: {[str(error) for error in errors]}")


def _error(run: Callable[[str], object], text: str) -> UserError | None:
    try:
        run(text)
    except UserError as error:
        return error
    return None


def edited(recipe: dict[str, Any], error: UserError) -> dict[str, Any]:
    """Return the recipe with the change that the hint of an error proposes."""
    batch = _BATCH.match(error.hint)
    if batch:
        return {**recipe, "package": {"triton": {"max_batch_size": int(batch["size"])}}}
    proposed = _YAML.search(error.hint)
    if proposed:
        value = yaml.safe_load(proposed[1])
        if "profiles" in value:
            return {**recipe, **value}
        return {**recipe, "bench": {**recipe["bench"], "shapes": [value]}}
    samples = _SAMPLES.search(error.hint)
    if samples:
        return {**recipe, **yaml.safe_load(samples["samples"])}
    if "leave profiles out" in error.hint:
        return {name: value for name, value in recipe.items() if name != "profiles"}
    meant, unknown = _MEANT.search(error.hint), _UNKNOWN.search(error.what)
    assert meant, f"a hint that nobody can take literally: {error}"
    assert unknown, error
    return yaml.safe_load(yaml.safe_dump(recipe).replace(unknown["unknown"], meant["meant"]))
