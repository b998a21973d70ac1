"""Turn a variant of a recipe and the steps into jobs, each after the jobs that it needs; refuse what gives no plan."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from engine.builder.job import FOR, Job
from engine.builder.variant import PlannedVariant
from engine.errors import StepError, UsageError
from engine.recipe.schema import Recipe
from engine.runtimes import registry
from engine.step import Source, Step
from engine.text import canonical, suggestions

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe

_OURS = "engine."
"""How the names of the modules of this program begin: its own steps are tested, and need no check in each plan."""
_BUILT = "compiled"
"""The output that is the built model of a runtime."""


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
        planned = plan(loaded.recipe.model_copy(update={"steps": options}), steps)
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


def plan(recipe: Recipe, steps: Mapping[str, type[Step]]) -> tuple[Job, ...]:
    """Return the jobs of one recipe, each after the jobs that it needs.

    Where the recipe's runtime stands for several, the plan also has the jobs that build the model for each of them.
    Raises StepError if no step makes a required input, if two steps claim the same place in the order, if steps need
    each other in a circle, if a worker would get another value of an option, or if an option holds a source that no row
    would have.
    """
    jobs, _ = of_one_runtime(recipe, steps)
    delivering = [job.name for job in jobs if job.step.delivers]
    if len(delivering) > 1:
        raise StepError(f"two steps make what the user gets: {delivering[0]!r} and {delivering[1]!r}")
    if registry.of(recipe).candidates(recipe):
        jobs = _joined(recipe, jobs, steps)
    for job in jobs:
        if not type(job.step).__module__.startswith(_OURS):
            refuse_lossy(job.name, job.step)
            refuse_unhashed(job.name, job.step)
    return ordered(jobs)


def refuse_lossy(name: str, step: Step) -> None:
    """Raise StepError for an option that a worker would get as another value or type than the step `name` has here."""
    kind, which = type(step), "an option"
    try:
        for option in kind.model_fields:
            which = f"the option {option!r}"
            # No row of a key can hold half a character, or a number of thousands of digits.
            json.dumps(canonical.encode(step, [option]), ensure_ascii=False).encode()
        which = "an option"
        copy = canonical.decode(kind, canonical.encode(step))
    except (AttributeError, TypeError, ValueError) as error:
        raise _lossy(name, which, str(error).splitlines()[:4]) from error
    for option in canonical.differing(step, copy):
        planned, decoded = (reprlib.repr(getattr(each, option)) for each in (step, copy))
        raise _lossy(name, f"the option {option!r}", [f"planned: {planned}", f"in a worker: {decoded}"])


def refuse_unhashed(name: str, step: Step) -> None:
    """Raise StepError for a source in the options of `name` that is no input: no row would have its content."""
    sources = step.sources()
    inputs = list(sources.values())
    for option in type(step).model_fields:
        value = getattr(step, option)
        lost = [source for source in _sources_in(value) if source not in inputs]
        if lost or (option not in sources and step.holds_source(option) and not isinstance(value, tuple | None)):
            raise StepError(
                f"the key of the step {name!r} cannot have the option {option!r}",
                [f"its value: {reprlib.repr(value)}"],
                "a source is a field of the type `Source`, `Source | None` or `tuple[Source, ...]`",
            )


def _sources_in(value: Any) -> Iterator[Source]:
    """Yield each source in a value of an option, at any depth."""
    if isinstance(value, Source):
        yield value
    elif isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from _sources_in(getattr(value, field))
    elif isinstance(value, Mapping):
        for each in (*value, *value.values()):
            yield from _sources_in(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _sources_in(each)


def _lossy(name: str, which: str, facts: list[str]) -> StepError:
    return StepError(
        f"a worker cannot get {which} of the step {name!r} as it is planned",
        facts,
        "declare a type whose values JSON can give back, such as `str`, `int`, `tuple[str, ...]` or a model",
    )


def of_one_runtime(recipe: Recipe, steps: Mapping[str, type[Step]]) -> tuple[list[Job], _Wiring]:
    """Return the jobs of the steps that take part for the recipe's runtime, in no order, and their connections."""
    chosen = {name: kind.for_recipe(recipe) for name, kind in steps.items()}
    planned = {name: step for name, step in chosen.items() if step is not None}
    wiring = _Wiring(steps, planned)
    jobs = [
        Job(
            recipe=recipe.name,
            name=name,
            origin=step,
            needs=wiring.needs(name),
            hermetic=recipe.hermetic,
            gates=tuple(gate for gate in step.gates if gate in planned),
        )
        for name, step in planned.items()
    ]
    return jobs, wiring


def _joined(recipe: Recipe, jobs: Iterable[Job], steps: Mapping[str, type[Step]]) -> list[Job]:
    """Return the jobs of a recipe whose runtime stands for several, with those that build the model for each of them.

    Such a branch has the jobs with which a recipe that names the runtime would get its built model. Branches share the
    jobs whose steps and inputs are the same. A step that is another one in a later branch has one more job there, whose
    name has the runtime's: `quantize@tensorrt`. A step that takes the models of several runtimes gets the output of
    each branch.
    """
    from engine.builder import plan_graph

    by_name = {job.name: job for job in jobs}
    models = {}
    for runtime in registry.of(recipe).candidates(recipe):
        own, wiring = of_one_runtime(recipe.as_run_by(runtime), steps)
        model = wiring.maker(_BUILT)
        branch = plan_graph.up_to(ordered(own), [model])
        names = add_branch(by_name, (replace(job, origin=job.step.as_candidate()) for job in branch), runtime)
        models[runtime] = names[model]
    return [
        replace(job, needs={**job.needs, **{name: models[each] for name, each in job.step.models_of().items()}})
        for job in by_name.values()
    ]


def add_branch(by_name: dict[str, Job], branch: Iterable[Job], label: str) -> dict[str, str]:
    """Add the jobs of a branch, which are in order, to those in `by_name`; return the name that each job has there.

    A job whose step and inputs are those of a job in `by_name` is that job. Another job whose name is taken has one
    more part in its name: `quantize@tensorrt` for the label `tensorrt`.
    """
    names: dict[str, str] = {}
    for job in branch:
        needs = {parameter: names[maker] for parameter, maker in job.needs.items()}
        name = next((name for name, each in by_name.items() if (each.step, each.needs) == (job.step, needs)), None)
        if name is None:
            name = job.name
            while name in by_name:
                name += f"{FOR}{label}"
            by_name[name] = replace(job, name=name, needs=needs, gates=tuple(names[gate] for gate in job.gates))
        names[job.name] = name
    return names


def ordered(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Return jobs, each after the jobs that it needs; of several possible next jobs, the first by name.

    Raises StepError for jobs that need each other.
    """
    jobs = list(jobs)
    by_name = {job.name: job for job in jobs}
    return tuple(by_name[name] for name in _order(tuple((job.name, job.earlier) for job in jobs)))


@cache  # the variants of a recipe are mostly wired alike
def _order(needs: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[str, ...]:
    """Return the names of jobs, each after the jobs that it needs; of several possible next jobs, the first by name."""
    graph = TopologicalSorter(dict(needs))
    try:
        graph.prepare()
    except CycleError as error:
        raise StepError(
            "these steps need each other: " + " -> ".join(error.args[1]),
            hint="check the `after` and the inputs of the steps that other packages bring (`recipe steps`)",
        ) from None
    order: list[str] = []
    ready: list[str] = []
    while graph.is_active():
        for name in graph.get_ready():
            heappush(ready, name)
        order.append(heappop(ready))
        graph.done(order[-1])
    return tuple(order)


class _Wiring:
    """The connections between the jobs of a recipe: for each input of a step, the job that makes the input."""

    def __init__(self, steps: Mapping[str, type[Step]], planned: Mapping[str, Step]) -> None:
        self.steps = steps
        self.planned = planned
        self.slotted: dict[str, str] = {}
        for name in sorted(planned):
            place = steps[name].after
            if place is None:
                continue
            if place not in steps:
                raise StepError(
                    f"the step {name!r} wants to come after {place!r}, and there is no such step",
                    [f"steps: {', '.join(sorted(steps))}"],
                )
            if place in self.slotted:
                raise StepError(
                    f"two steps claim the place after {place!r}: {self.slotted[place]!r} and {name!r}",
                    hint=f'let one of them say `after = "{name}"`, or leave one out of the recipe\'s `steps:`',
                )
            self.slotted[place] = name

    def maker(self, output: str) -> str:
        """Return the name of the job whose output a step gets that takes `output`.

        Raises StepError if no step makes the output.
        """
        maker = self._maker(output, asker="")
        if maker is None:
            raise StepError(f"no step of this recipe makes {output!r}")
        return maker

    def needs(self, name: str) -> dict[str, str]:
        """Return, for each input of a step, the job whose output the input gets.

        Raises StepError for a required input that no step makes.
        """
        kind = self.steps[name]
        used = self.planned[name].inputs_used()
        filled = {}
        for index, parameter in enumerate(kind.inputs()):
            if parameter not in used:
                continue
            if index == 0 and kind.after is not None:
                maker = self._handed_on_by(kind.after, asker=name)
            else:
                maker = self._maker(parameter, asker=name)
            if maker is not None:
                filled[parameter] = maker
            elif parameter in kind.required_inputs():
                raise StepError(
                    f"the step {name!r} needs {parameter!r}, which no step of this recipe makes",
                    [f"{other} makes {step.makes!r}" for other, step in sorted(self.steps.items())],
                )
        return filled

    def _maker(self, output: str, *, asker: str) -> str | None:
        """Return the name of the job that makes the input `output` of the step `asker`; None if no step makes it."""
        named = [n for n, kind in self.steps.items() if output == kind.makes and kind.after is None]
        makers = named or [n for n in self.steps if n.replace("-", "_") == output]
        in_plan = [n for n in makers if n in self.planned]
        if len(in_plan) > 1:
            raise StepError(f"two steps make {output!r} for {asker!r}: {in_plan[0]!r} and {in_plan[1]!r}")
        chosen = (in_plan or makers)[:1]
        return self._handed_on_by(chosen[0], asker=asker) if chosen else None

    def _handed_on_by(self, name: str, *, asker: str) -> str | None:
        """Return the name of the job whose output the step `asker` gets where it needs the output of the step `name`.

        The job of a step that comes `after` the step `name` is chosen first; else the job of the step `name` itself, if
        the recipe has it; else the job that provides the first input of the step `name`.
        """
        slotted = self.slotted.get(name)
        if slotted is not None and slotted != asker:
            return self._handed_on_by(slotted, asker=asker)
        if name in self.planned:
            return name
        first = next(iter(self.steps[name].inputs()), None)
        return None if first is None else self._maker(first, asker=asker)
