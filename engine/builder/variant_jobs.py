"""Plan the jobs of a variant of a recipe; refuse a name that no step has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from engine.builder import jobs
from engine.builder.job import Job
from engine.builder.variant import PlannedVariant
from engine.errors import UsageError
from engine.recipe.load import LoadedRecipe
from engine.step import Step
from engine.text import suggestions


def known_step(name: str, steps: Mapping[str, type[Step]]) -> None:
    """Raise UsageError for a name that no step has."""
    if name not in steps:
        near = suggestions.nearest(name, steps)
        hint = suggestions.did_you_mean(f"`{near[0]}`") if near else "`recipe steps` says what each of them does"
        raise UsageError(f"there is no step {name!r}", [f"steps: {', '.join(sorted(steps))}"], hint)


def planned_variant(loaded: LoadedRecipe, steps: Mapping[str, type[Step]], to: Sequence[str]) -> PlannedVariant:
    """Return a variant of a recipe that can work with its jobs. Raises UserError where it cannot be planned."""
    for name in loaded.recipe.steps:
        if name not in steps:
            raise loaded.error(
                f"there is no step {name!r}",
                "steps",
                name,
                facts=[f"steps: {', '.join(sorted(steps))}"],
                hint=_no_step(name, steps),
            )
    planned = _planned(loaded, steps)
    if to:
        from engine.builder import plan_graph

        planned = plan_graph.up_to(planned, to)
    return PlannedVariant(loaded, planned)


def _no_step(name: str, steps: Iterable[str]) -> str:
    """Return the hint for a name in the field `steps` that no step has."""
    near = suggestions.nearest(name, steps)
    install = "install the package that brings it; `recipe steps` lists what there is"
    return f"{suggestions.did_you_mean(f'`{near[0]}`')} Else {install}" if near else install


def _planned(loaded: LoadedRecipe, steps: Mapping[str, type[Step]]) -> tuple[Job, ...]:
    options = _Consulted(loaded.recipe.steps)
    try:
        planned = jobs.plan(loaded.recipe.model_copy(update={"steps": options}), steps)
    except ValidationError as error:
        named = next((name for name, kind in steps.items() if kind.__name__ == error.title), error.title)
        raise loaded.complaint(error, "steps", named) from None
    for name in options.keys() - options.consulted:
        hint = "what it can be told are the recipe's own fields: see docs/recipe.md"
        raise loaded.error(f"the step {name!r} takes no options under `steps`", "steps", name, hint=hint)
    return planned


class _Consulted(dict[str, Mapping[str, Any]]):
    """The field `steps` of a recipe: a dictionary that notes the steps whose options were read."""

    def __init__(self, options: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(options)
        self.consulted: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.consulted.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        self.consulted.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.consulted.add(str(key))
        return super().__contains__(key)
