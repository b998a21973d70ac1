"""The program as functions: what the commands do, without a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from engine import feasibility, jobs, machine, registry, sources
from engine.errors import Exit, StepError, UsageError, UserError
from engine.events import Event, Finished
from engine.executors.local import LocalExecutor
from engine.kit import triton_fields
from engine.lookup import Finding, Lookup, Variant, examine
from engine.recipe.load import LoadedRecipe, load
from engine.recipe.project import project_of
from engine.run import Options, run
from engine.step import Step
from engine.steps.fetch import describe
from engine.store import Store
from engine.summary import Summary, summarise

_MEMORY_PER_JOB = 4 << 30
"""What a job may need in bytes: a MiniLM-sized export peaks at about 1 GB, BERT-large at about 4 GB."""

Recipes = str | Path | Sequence[str | Path]


class Reading(TypedDict, total=False):
    """How recipes are read: what the options of the command line say."""

    set: Sequence[str]
    only: Sequence[str]
    allow: Sequence[str | Path]
    to: Sequence[str]
    cache: str | Path | None
    refresh: bool


@dataclass(frozen=True)
class Selection:
    """Which recipes, and how they are read."""

    paths: tuple[Path, ...]
    set: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    allow: tuple[Path, ...] = ()
    to: tuple[str, ...] = ()
    cache: Path | None = None
    refresh: bool = False

    @property
    def project(self) -> Path:
        """The project of the first recipe: where `cache/` and `build/` are by default."""
        return project_of(self.paths[0])

    @property
    def store(self) -> Path:
        """The store's folder: as asked for, by RECIPE_CACHE, or `cache/` of the project."""
        return self.cache or Path(os.environ.get("RECIPE_CACHE") or self.project / "cache")


def plan(recipes: Recipes, **reading: Unpack[Reading]) -> tuple[Variant, ...]:
    """Read recipes and return each variant with its jobs in order. Raises RecipeError, StepError."""
    return variants(select(recipes, **reading))


@dataclass(frozen=True)
class Checked:
    """A variant that is fine, and whether its model was there to be asked, too."""

    variant: Variant
    model: bool


def check(recipes: Recipes, **reading: Unpack[Reading]) -> list[Checked]:
    """Check schema, hardware feasibility and plan; touch nothing. Raises RecipeError, StepError.

    What a model says of itself is checked where it lies here or was fetched before.
    """
    selection = select(recipes, **reading)
    found = []
    for variant in variants(selection):
        facts = _model_facts(selection, variant)
        if facts is not None:
            feasibility.check_model(variant.loaded, facts)
        found.append(Checked(variant, model=facts is not None))
    return found


def why(recipes: Recipes, **reading: Unpack[Reading]) -> list[Finding]:
    """Say for every job whether it is cached, or the rows that decided otherwise."""
    asked = session(recipes, **reading)
    found = asked.findings()
    asked.lookup.save()
    return found


def show(recipes: Recipes, **reading: Unpack[Reading]) -> list[Summary]:
    """Return what was built of each variant, and what was measured."""
    return session(recipes, **reading).summaries()


def build(
    recipes: Recipes,
    *,
    out: Path | str | None = None,
    parallel: int | None = None,
    force: Iterable[str] = (),
    keep_going: bool = False,
    allow_waiting: bool = False,
    on_event: Callable[[Event], None] = lambda _: None,
    **reading: Unpack[Reading],
) -> Finished:
    """Build what is not built and return how it went; packages are put under `out` (default: `build/`).

    Raises RecipeError and UsageError before anything runs; what fails later is in the events.
    """
    return session(recipes, **reading).build(
        out=Path(out) if out is not None else None,
        parallel=parallel,
        force=force,
        keep_going=keep_going,
        allow_waiting=allow_waiting,
        on_event=on_event,
    )


def session(recipes: Recipes, **reading: Unpack[Reading]) -> Session:
    """Read, check and plan recipes, ready to be built."""
    selection = select(recipes, **reading)
    found = variants(selection)
    return Session(selection, found, Lookup(Store(selection.store), refresh=selection.refresh))


@dataclass(frozen=True)
class Session:
    """Variants about to be built, with the look-up that knows all that fed them."""

    selection: Selection
    variants: tuple[Variant, ...]
    lookup: Lookup

    def build(
        self,
        *,
        out: Path | None,
        parallel: int | None,
        force: Iterable[str],
        keep_going: bool,
        allow_waiting: bool,
        on_event: Callable[[Event], None],
    ) -> Finished:
        """Build; every event goes to `on_event`, the last one is returned."""
        for name in force:
            _known_step(name, registry.steps())
        options = Options(
            out=out or self.selection.project / "build",
            force=frozenset(force),
            keep_going=keep_going,
            allow_waiting=allow_waiting,
        )
        last = Finished("failed", 0.0, Exit.FAILED, {})
        for event in run(self.variants, self.lookup, LocalExecutor(parallel or default_parallel()), options):
            on_event(event)
            if isinstance(event, Finished):
                last = event
        return last

    def findings(self) -> list[Finding]:
        """Return what `why` says, as things stand."""
        return [finding for variant in self.variants for finding in examine(variant, self.lookup)]

    def summaries(self) -> list[Summary]:
        """Return what the store knows of each variant's last build."""
        return [summarise(self.lookup.store, variant) for variant in self.variants]


def select(recipes: Recipes, **reading: Unpack[Reading]) -> Selection:
    """Return a Selection from what functions and the command line give. Raises UsageError without a recipe."""
    given = [recipes] if isinstance(recipes, str | Path) else list(recipes)
    if not given:
        raise UsageError("no recipe is named", hint="recipe build recipes/minilm_cpu.yaml")
    cache = reading.get("cache")
    from_environment = [path for path in os.environ.get("RECIPE_ALLOW_PATHS", "").split(os.pathsep) if path]
    return Selection(
        paths=tuple(Path(path) for path in given),
        set=tuple(reading.get("set", ())),
        only=tuple(reading.get("only", ())),
        allow=tuple(Path(path) for path in (*reading.get("allow", ()), *from_environment)),
        to=tuple(reading.get("to", ())),
        cache=Path(cache) if cache is not None else None,
        refresh=reading.get("refresh", False),
    )


def variants(selection: Selection) -> tuple[Variant, ...]:
    """Read, check and plan all variants of a selection."""
    steps = registry.steps()
    for name in selection.to:
        _known_step(name, steps)
    loaded = [
        each
        for path in selection.paths
        for each in load(path, set=selection.set, only=selection.only, allow=selection.allow)
    ]
    _refuse_twins(loaded)
    return tuple(_variant(each, steps, selection.to) for each in loaded)


def _variant(loaded: LoadedRecipe, steps: Mapping[str, type[Step]], to: Sequence[str]) -> Variant:
    feasibility.check(loaded)
    _check_triton(loaded)
    for name in loaded.recipe.steps:
        if name not in steps:
            raise loaded.error(
                f"there is no step {name!r}",
                "steps",
                name,
                facts=[f"steps: {', '.join(sorted(steps))}"],
                hint="install the package that brings it; `recipe steps` lists what there is",
            )
    planned = _planned(loaded, steps)
    return Variant(loaded, jobs.up_to(planned, to) if to else planned)


def _check_triton(loaded: LoadedRecipe) -> None:
    """Refuse what Triton's ModelConfig cannot hold, where its definition is installed; `package` looks in any case."""
    overrides = loaded.recipe.package.triton.model_extra
    if not overrides or machine.version_of("tritonclient") == machine.MISSING:
        return
    try:
        triton_fields.check_overrides(overrides)
    except StepError as error:
        raise loaded.error(error.what, "package", "triton", facts=error.facts, hint=error.hint) from None


def _planned(loaded: LoadedRecipe, steps: Mapping[str, type[Step]]) -> tuple[jobs.Job, ...]:
    from pydantic import ValidationError

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
    """The options of steps, and which of them any step asked for: the others would be ignored."""

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


def _refuse_twins(loaded: Sequence[LoadedRecipe]) -> None:
    seen: dict[str, LoadedRecipe] = {}
    for each in loaded:
        name = each.recipe.name
        if name in seen:
            raise each.error(
                f"two recipes are called {name!r}",
                "name",
                facts=[str(seen[name].path), str(each.path)],
                hint="their packages would overwrite each other: rename one",
            )
        seen[name] = each


def _known_step(name: str, steps: Mapping[str, type[Step]]) -> None:
    if name not in steps:
        raise UsageError(f"there is no step {name!r}", [f"steps: {', '.join(sorted(steps))}"])


def _model_facts(selection: Selection, variant: Variant) -> Mapping[str, Any] | None:
    """Return what the model says of itself: as it lies here, or as an earlier fetch found it; None where neither is.

    Reads no tensor and writes nothing.
    """
    fetch = next((job for job in variant.jobs if job.name == "fetch"), None)
    if fetch is None:
        return None
    try:
        place = sources.place_of(fetch.step.sources()["source"])
        if place is not None:
            return describe(place)
    except UserError:
        return None  # a model that is not whole is the build's error, with more to say
    if not (selection.store / "format").is_file():
        return None
    return summarise(Store(selection.store), variant).report("fetch") or None


def default_parallel() -> int:
    """Return how many jobs run at once by default: as CPUs and memory allow."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        memory = _MEMORY_PER_JOB
    return max(1, min(machine.cpu_count(), memory // _MEMORY_PER_JOB))
