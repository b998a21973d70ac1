"""Search space: the knobs of all runtimes that a recipe's target can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from engine import gpus, tasks
from engine.runtimes import knobs, registry
from engine.runtimes.knobs import Knob

if TYPE_CHECKING:
    from engine.runtimes.recipes import RecipeView
    from engine.runtimes.runtime import Runtime

_THREADS, _INSTANCES = "package.triton.threads", "package.triton.instance_group"
_OF_RUNTIMES = ("tensorrt", "runtimes")
"""The sections of a recipe that only some runtimes read, and the others refuse."""
_MOST_ON_A_GPU = 4
"""The most instances that are tried on a GPU."""


def of_recipe(recipe: RecipeView, *, shapes: Sequence[Mapping[str, int]] = (), cpus: int = 1) -> tuple[Knob, ...]:
    """Return the knobs for a recipe: `target.runtime` first, then `precision`, then those of each runtime.

    `shapes` are the sizes of axes that are measured: a runtime that compiles sizes apart is offered a profile for each.
    `cpus` limits the threads and the instances of a server. A field that the recipe states, and that is no knob of a
    point's runtime, is left out of that point: its last knob has the value None.
    """
    stated = partial(knobs.value_at, recipe)
    able, named = _able(recipe), recipe.target.runtime
    default = named if named in able else next(iter(registry.of(recipe).candidates(recipe)), None)
    runtimes = Knob(knobs.RUNTIME, knobs.first(default, tuple(able)))
    forced: list[Knob] = []
    offered: list[Knob] = []
    for each in able.values():
        only = {knobs.RUNTIME: (each.name,)}
        own = (*each.knobs(recipe), *_profiles(each, recipe, shapes), *_load(each, recipe, cpus))
        forced += (replace(knob, when=only) for knob in _forced(each, recipe))
        offered += (replace(knob, when={**only, **knob.when}) for knob in own)
    offered.sort(key=lambda knob: knob.field != knobs.PRECISION)
    left_out = {
        knob.field: Knob(knob.field, (None,), of=knob.of)
        for knob in offered  # a section of some runtimes is left out as a whole
        if None in knob.values and stated(knob.field) is not None and not knob.field.startswith(_OF_RUNTIMES)
    }
    every = (runtimes, *forced, *offered, *left_out.values())
    return tuple(replace(knob, written=knob.written or stated(knob.field) == knob.values[0]) for knob in every)


def _able(recipe: RecipeView) -> dict[str, Runtime]:
    """Return the runtimes that run the recipe on its target and have knobs for it; those of `runtime: auto` first."""
    target = recipe.target
    named = [gpus.known(name) for name in target.devices if name != "cpu"]
    able, names = {}, registry.targets()
    for name in dict.fromkeys((*(first for each in names for first in registry.find(each).candidates(recipe)), *names)):
        runtime = registry.find(name)
        on_gpus = runtime.on_gpus and all(gpu is not None and runtime.builds_for(gpu) for gpu in named)
        fits = (on_gpus and (len(named) == 1 or runtime.several)) if named else runtime.on_cpus
        generates = runtime.generates(target) or not tasks.generates(recipe.model.task)
        if fits and generates and not runtime.candidates(recipe) and runtime.knobs(recipe):
            able[name] = runtime
    return able


def _forced(runtime: Runtime, recipe: RecipeView) -> list[Knob]:
    """Return the knobs with one value, without which the recipe would be refused if it named this runtime."""
    target = recipe.as_run_by(runtime.name).target
    read = ("tensorrt" in runtime.sections(target), runtime.name in recipe.runtimes)
    stated = (section for section, is_read in zip(_OF_RUNTIMES, read, strict=True) if not is_read)
    every = [Knob(section, (None,)) for section in stated if knobs.value_at(recipe, section) is not None]
    by_provider = recipe.target.provider is not None or recipe.target.device != "cpu"
    return [*every, *([Knob("target.provider", (target.provider,))] if by_provider else [])]


def _profiles(runtime: Runtime, recipe: RecipeView, shapes: Sequence[Mapping[str, int]]) -> list[Knob]:
    """Return the knob that adds a profile of one size for each measured shape, for a runtime that compiles it apart."""
    written = [{axis: _extent(extent) for axis, extent in profile.items()} for profile in recipe.profiles]
    fixed = [dict(shape) for shape in shapes if dict(shape) not in written]
    apart = runtime.compiles_sizes or runtime.fixes_profiles(recipe.target)
    if not (apart and written and fixed) or recipe.shape_values:
        return []
    return [Knob("profiles", (written, [*fixed, *written]), written=True)]


def _extent(extent: Any) -> object:
    return extent.opt if extent.min == extent.max else [extent.min, extent.opt, extent.max]


def _load(runtime: Runtime, recipe: RecipeView, cpus: int) -> list[Knob]:
    """Return the knobs of the server: threads of an operator on a CPU, and instances of the model."""
    if not runtime.loads_in_triton:
        return []
    on_cpu = runtime.runs_on_cpu(recipe.target)
    kind, most = ("KIND_CPU", cpus) if on_cpu else ("KIND_GPU", _MOST_ON_A_GPU)
    groups = [[{"kind": kind, "count": count}] for count in knobs.powers_of_two(most)[1:]]
    threads = knobs.powers_of_two(cpus) if on_cpu and runtime.threads_in_triton else ()
    every = [Knob(_INSTANCES, (None, *groups), of="load"), Knob(_THREADS, (None, *threads), of="load")]
    return [each for each in every if len(each.values) > 1]
