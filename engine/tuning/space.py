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
            said = {path: knobs.said(recipe, path) for path in recipe.tune.over}
            values = {path: knobs.first(said[path], each) for path, each in recipe.tune.over.items()}
            return cls(tuple(Knob(path, each, written=each[0] == said[path]) for path, each in values.items()))
        offered = search_space.of_recipe(recipe, shapes=[objective.sizes], cpus=cpu.physical_cores())
        return cls(tuple(each for each in offered if objective.chooses_rows or each.of == "model"))

    def point(self, choose: Callable[[str, int], int]) -> Point:
        """Return the point of a sampler; `choose` gets the name of a knob and the number of its values."""
        return knobs.point(self.knobs, lambda knob: knob.values[choose(self._name(knob), len(knob.values))])

    def point_of(self, choices: Choices) -> Point:
        """Return the point of choices; a knob that they lack has its first value."""
        return self.point(lambda name, _: choices.get(name, 0))

    def every(self) -> Iterator[Choices]:
        """Yield the choices of every point."""
        return self._varied(lambda _: True)

    def first(self) -> Iterator[Choices]:
        """Yield the choices of each runtime and precision, with everything else as it is written.

        So what `runtime: auto` would choose is always among the trials.
        """
        return self._varied(lambda field: field in (knobs.RUNTIME, knobs.PRECISION))

    def _varied(self, varies: Callable[[str], bool]) -> Iterator[Choices]:
        """Yield all choices of the knobs with certain fields, like the numbers of an odometer."""
        fixed = {self._name(knob) for knob in self.knobs if not varies(knob.field)}
        digits: list[tuple[str, int, int]] = []
        while True:
            taken: list[tuple[str, int, int]] = []
            every: dict[str, int] = {}

            def choose(
                name: str, count: int, taken: list[tuple[str, int, int]] = taken, every: dict[str, int] = every
            ) -> int:
                if name not in fixed:
                    taken.append(digits[len(taken)] if len(taken) < len(digits) else (name, 0, count))
                return every.setdefault(name, 0 if name in fixed else taken[-1][1])

            self.point(choose)
            yield every
            while taken and taken[-1][1] + 1 == taken[-1][2]:
                taken.pop()
            if not taken:
                return
            name, index, count = taken[-1]
            digits = [*taken[:-1], (name, index + 1, count)]

    def _name(self, knob: Knob) -> str:
        return f"{self.knobs.index(knob)} {knob.field}"


def ident(point: Point) -> str:
    """Return the same text for equal points."""
    return json.dumps(point, sort_keys=True, default=str)
