"""Space: the points of a search, each once, and the trials that every search begins with."""

# The space names no runtime, no precision and no knob: the recipe does, or the runtimes of the target do.

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine import gpus
from engine.machine import cpu
from engine.recipe.node import plain
from engine.runtimes import registry

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe
    from engine.runtimes.runtime import Runtime
    from engine.tuning.objective import Objective
    from engine.tuning.trials import Point

RUNTIME, PRECISION, PROVIDER = "target.runtime", "precision", "target.provider"
_ROWS, _COPIES = "package.triton.max_batch_size", "package.triton.instance_group"
_MOST_COPIES = 8
BRANCH = ""
"""The name of the choice between runtimes."""
Choices = Mapping[str, int]
"""A point as a sampler has it: the name of a dimension -> the index of the value."""


@dataclass(frozen=True)
class Dimension:
    """A field, the values that are tried, and the values of other fields under which it says anything."""

    path: str
    values: tuple[object, ...]
    """The first is that of the recipe as it is written; None for no value."""
    when: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    default: object = None
    """The value that a recipe without the field has."""


@dataclass(frozen=True)
class Branch:
    """The dimensions of one runtime, and fields of the recipe that this runtime cannot have."""

    name: str
    fixed: Mapping[str, object]
    dimensions: tuple[Dimension, ...]

    def choice(self, dimension: Dimension) -> str:
        """Return the name of a dimension's choice: runtimes may have different values of one field."""
        return f"{self.name}/{dimension.path}"


@dataclass(frozen=True)
class Space:
    """All points of a search."""

    written: Mapping[str, Any]
    """The recipe with its defaults, as a mapping of mappings."""
    stated: Mapping[str, Any]
    """What the recipe's text states."""
    branches: tuple[Branch, ...]

    @classmethod
    def of(cls, loaded: LoadedRecipe, objective: Objective) -> Space:
        """Return the points among `tune.over`; without it, among the knobs of the runtimes that the target can have."""
        recipe, stated = loaded.recipe, plain(loaded.root)
        over = {} if recipe.tune is None else recipe.tune.over
        serving = () if not objective.chooses_rows else _serving(loaded)
        more = [each for each in serving if each.path not in over]
        if over:
            given = [Dimension(path, _stated_first(stated, path, values)) for path, values in over.items()]
            branches = [Branch("", {}, (*given, *more))]
        else:
            branches = [_branch(loaded, stated, name, more) for name in _runtimes(loaded)]
        return cls(recipe.model_dump(mode="json", by_alias=True), stated, tuple(branches))

    def point(self, choices: Choices) -> Point:
        """Return the point of a sampler's choices, without what the recipe says anyway, and without idle knobs."""
        branch = self.branches[choices.get(BRANCH, 0)]
        point: dict[str, object] = dict(branch.fixed)
        for each in branch.dimensions:
            value = each.values[choices.get(branch.choice(each), 0)]
            if any(point.get(path, at(self.written, path)) not in values for path, values in each.when.items()):
                value = None
            stated = at(self.stated, each.path)
            is_same = value == stated if stated is not None else value in (None, each.default, at(self.written, each.path))
            if not is_same:
                point[each.path] = value
        return point

    def every(self) -> Iterator[Choices]:
        """Yield the choices of every point; several of them may mean the same point."""
        return self._product(lambda _: True)

    def first(self) -> Iterator[Choices]:
        """Yield the choices of each runtime and precision, with everything else as it is written.

        So what `runtime: auto` would choose is always among the trials.
        """
        return self._product(lambda path: path in (RUNTIME, PRECISION))

    def _product(self, varies: Callable[[str], bool]) -> Iterator[Choices]:
        for number, branch in enumerate(self.branches):
            varied = [each for each in branch.dimensions if varies(each.path)]
            names = [branch.choice(each) for each in varied]
            for indices in itertools.product(*(range(len(each.values)) for each in varied)):
                yield {BRANCH: number, **dict(zip(names, indices, strict=True))}


def ident(point: Point) -> str:
    """Return the same text for equal points."""
    return json.dumps(point, sort_keys=True, default=str)


def _runtimes(loaded: LoadedRecipe) -> list[str]:
    """Return the names of the runtimes that can build for the target, without those that stand for several."""
    recipe = loaded.recipe
    views = {name: recipe.as_run_by(name) for name in registry.targets()}
    single = {name: view for name, view in views.items() if not view.runtime.candidates(view)}
    return [name for name, view in single.items() if _can_have(view.runtime, view.target)]


def _can_have(runtime: Runtime, target: Any) -> bool:
    if runtime.runs_on_cpu(target):
        return runtime.on_cpus
    known = [gpus.known(name) for name in target.devices]
    return (runtime.several or len(known) == 1) and all(gpu is not None and runtime.builds_for(gpu) for gpu in known)


def _branch(loaded: LoadedRecipe, stated: Mapping[str, Any], name: str, more: list[Dimension]) -> Branch:
    """Return the dimensions of one runtime; sections that it does not read are taken out of the recipe."""
    recipe = loaded.recipe
    target = recipe.as_run_by(name).target
    fixed: dict[str, object] = {}
    if name != recipe.target.runtime:
        fixed[RUNTIME] = name
        if at(stated, PROVIDER) is not None and target.provider is None:
            fixed[PROVIDER] = None
        foreign = set(recipe.runtime.sections(recipe.target)) - set(registry.find(name).sections(target))
        fixed |= dict.fromkeys(sorted(section for section in foreign if section in stated))
    knobs = registry.find(name).knobs(target)
    own = [
        Dimension(each.field, _with_stated(stated, each.field, each.values), each.when, each.values[0]) for each in knobs
    ]
    return Branch(name, fixed, (*own, *more))


def _serving(loaded: LoadedRecipe) -> tuple[Dimension, ...]:
    """Return how many rows a call has, up to those of the profiles, and how many copies of the model run at once."""
    most = max((each["batch"].max for each in loaded.recipe.profiles if "batch" in each), default=1)
    rows = tuple(2**power for power in range(most.bit_length()))
    kind = "KIND_CPU" if loaded.recipe.target.device == "cpu" else "KIND_GPU"
    cores = cpu.physical_cores() if kind == "KIND_CPU" else _MOST_COPIES
    counts = [count for count in (1, 2, 4, 8) if count <= min(cores, _MOST_COPIES)]
    copies = tuple([{"count": count, "kind": kind}] for count in counts)
    stated = plain(loaded.root)
    return tuple(
        Dimension(path, _with_stated(stated, path, values)) for path, values in ((_ROWS, rows), (_COPIES, copies))
    )


def _with_stated(stated: Mapping[str, Any], path: str, values: tuple[object, ...]) -> tuple[object, ...]:
    """Return the values of a field and, as the first, what the recipe states, if it states anything."""
    own = at(stated, path)
    return values if own is None else (own, *(value for value in values if value != own))


def _stated_first(stated: Mapping[str, Any], path: str, values: tuple[object, ...]) -> tuple[object, ...]:
    """Return the values of a field, that of the recipe first if it is one of them."""
    return tuple(sorted(values, key=lambda value: value != at(stated, path)))


def at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path; None where there is none."""
    value: Any = values
    for segment in path.split("."):
        value = value.get(segment) if isinstance(value, Mapping) else None
    return value
