"""Space: the points of a search, and the trials that every search begins with."""

# The space names no runtime, no precision and no knob: the recipe does, or the runtimes of the target do.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.machine import cpu
from engine.runtimes import knobs, search_space
from engine.runtimes.knobs import Knob

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe
    from engine.tuning.objective import Objective
    from engine.tuning.trials import Point

Choices = Mapping[str, int]
"""A point as a sampler has it: the name of a knob -> the index of its value, 0 for a knob that is not named."""


@dataclass(frozen=True)
class Space:
    """All points of a search; choices of a knob whose conditions do not hold change no point."""

    knobs: tuple[Knob, ...]

    @classmethod
    def of(cls, recipe: Recipe, objective: Objective) -> Self:
        """Return the points among `tune.over`; without it, what the runtimes offer that the target can have."""
        if recipe.tune is not None and recipe.tune.over:
            own = {path: knobs.value_at(recipe, path) for path in recipe.tune.over}
            values = {path: knobs.first(own[path], each) for path, each in recipe.tune.over.items()}
            return cls(tuple(Knob(path, each, written=each[0] == own[path]) for path, each in values.items()))
        shapes = [] if objective.chooses_rows else [objective.sizes]
        offered = search_space.of_recipe(recipe, shapes=shapes, cpus=cpu.physical_cores())
        return cls(tuple(each for each in offered if objective.chooses_rows or each.of == "model"))

    @property
    def defaults(self) -> Choices:
        """The first value of every knob."""
        return {self._name(knob): 0 for knob in self.knobs}

    def point(self, choose: Callable[[str, int], int]) -> Point:
        """Return the point of a sampler; `choose` gets the name of a knob and the number of its values."""
        return knobs.point(self.knobs, lambda knob: knob.values[choose(self._name(knob), len(knob.values))])

    def point_of(self, choices: Choices) -> Point:
        """Return the point of choices."""
        return self.point(lambda name, _: choices.get(name, 0))

    def first(self) -> Iterator[Choices]:
        """Yield the choices of each runtime, then of each precision of each, with everything else as it is written."""
        yield from self.neighbours({}, knobs.RUNTIME)
        for choices in self.neighbours({}, knobs.RUNTIME):
            yield from self.neighbours(choices, knobs.PRECISION)

    def neighbours(self, choices: Choices, field: str = "") -> Iterator[Choices]:
        """Yield the choices, and those that differ from them in one knob: in a knob of `field`, if one is named."""
        yield choices
        for knob in self.knobs:
            for index in range(len(knob.values) if field in ("", knob.field) else 0):
                yield {**choices, self._name(knob): index}

    def _name(self, knob: Knob) -> str:
        return f"{self.knobs.index(knob)} {knob.field}"
