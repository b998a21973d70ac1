"""Space: the points of a search, and the trials that every search begins with."""

# The space names no runtime, no precision and no knob: the recipe does, or the runtimes of the target do.

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.machine import cpu
from engine.runtimes import knobs, search_space
from engine.runtimes.knobs import Knob

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe
    from engine.tuning.objective import Objective
    from engine.tuning.trials import Point

Choices = Mapping[str, int]
"""A point as a sampler has it: the name of a knob -> the index of its value."""


@dataclass(frozen=True)
class Space:
    """All points of a search; knobs whose conditions do not hold have no choice."""

    knobs: tuple[Knob, ...]

    @classmethod
    def of(cls, loaded: LoadedRecipe, objective: Objective) -> Self:
        """Return the points among `tune.over`; without it, what the runtimes offer that the target can have."""
        recipe = loaded.recipe
        if recipe.tune is not None and recipe.tune.over:
            own = {path: knobs.value_at(recipe, path) for path in recipe.tune.over}
            values = {path: knobs.first(own[path], each) for path, each in recipe.tune.over.items()}
            return cls(tuple(Knob(path, each, written=each[0] == own[path]) for path, each in values.items()))
        shapes = [] if objective.chooses_rows else [objective.sizes]
        offered = search_space.of_recipe(recipe, shapes=shapes, cpus=cpu.physical_cores())
        return cls(tuple(each for each in offered if objective.chooses_rows or each.of == "model"))

    def point(self, choose: Callable[[str, int], int]) -> Point:
        """Return the point of a sampler; `choose` gets the name of a knob and the number of its values."""
        return knobs.point(self.knobs, lambda knob: knob.values[choose(self._name(knob), len(knob.values))])

    def point_of(self, choices: Choices) -> Point:
        """Return the point of choices; a knob that they lack has its first value."""
        return self.point(lambda name, _: choices.get(name, 0))

    def counts(self, choices: Choices) -> Mapping[str, int]:
        """Return for each knob of a point with a choice how many values it has."""
        counts: dict[str, int] = {}

        def choose(name: str, count: int) -> int:
            counts[name] = count
            return choices.get(name, 0)

        self.point(choose)
        return counts

    def every(self) -> Iterator[Choices]:
        """Yield the choices of every point."""
        return self._varied(lambda _: True, {})

    def first(self) -> Iterator[Choices]:
        """Yield the choices of each runtime and precision, with everything else as it is written.

        So what `runtime: auto` would choose is always among the trials.
        """
        return self._varied(lambda name: name.partition(" ")[2] in (knobs.RUNTIME, knobs.PRECISION), {})

    def _varied(self, varies: Callable[[str], bool], chosen: Choices) -> Iterator[Choices]:
        """Yield all choices that begin with `chosen`; a knob that does not vary has its first value."""
        missing = [each for each in self.counts(chosen).items() if each[0] not in chosen]
        if not missing:
            yield chosen
            return
        name, count = missing[0]  # which knobs come behind it depends on its value
        for index in range(count if varies(name) else 1):
            yield from self._varied(varies, {**chosen, name: index})

    def _name(self, knob: Knob) -> str:
        return f"{self.knobs.index(knob)} {knob.field}"


def ident(point: Point) -> str:
    """Return the same text for equal points."""
    return json.dumps(point, sort_keys=True, default=str)
