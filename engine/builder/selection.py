"""Select recipes, with the options for reading them; refuse a recipe that cannot work, whatever its steps are."""

# A refusal should come at once, so nothing here imports the steps.

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict, TypeVar, Unpack

from engine import feasibility
from engine.errors import UsageError
from engine.recipe import overrides
from engine.recipe.load import LoadedRecipe
from engine.recipe.project import jobs_of, project_of, store_of
from engine.runtimes import registry as runtimes

T = TypeVar("T", bound=Path)

Recipes = str | Path | Sequence[str | Path]


Assignments = str | Sequence[str] | Mapping[str, object]
"""Assignments of values to fields, as texts K=V or as a mapping of K to V."""


class Reading(TypedDict, total=False):
    """Options for reading recipes; the command line's options have the same names."""

    set: Assignments
    only: Assignments
    allow: str | Path | Sequence[str | Path]
    to: str | Sequence[str]
    cache: str | Path | None
    refresh: bool
    locked: bool
    frozen: bool
    paranoid: bool


class Selection(NamedTuple):
    """Recipes, and the options for reading them."""

    paths: tuple[Path, ...]
    set: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    allow: tuple[Path, ...] = ()
    to: tuple[str, ...] = ()
    cache: Path | None = None
    refresh: bool = False
    locked: bool = False
    frozen: bool = False
    paranoid: bool = False
    """Whether every file is read once, whatever the stat rows of earlier builds are."""
    jobs: int | None = None
    """How many jobs run at once, by the `recipe.toml` of the project."""

    @property
    def project(self) -> Path:
        """The project folder of the first recipe, which holds `cache/` and `build/` by default."""
        return project_of(self.paths[0])

    @property
    def store(self) -> Path:
        """The store's folder, as `store_of` returns it."""
        return store_of(self.cache, self.paths[0])


def select(recipes: Recipes, **reading: Unpack[Reading]) -> Selection:
    """Return a Selection of recipes with options; RECIPE_ALLOW_PATHS adds allowed paths.

    Raises UsageError if `recipes` is empty, and UserError for a wrong `recipe.toml`.
    """
    given = listed(recipes)
    if not given:
        raise UsageError("no recipe is named", hint="recipe build recipes/minilm_cpu.yaml")
    _refuse_contradictions(reading)
    cache = reading.get("cache")
    from_environment = [path for path in os.environ.get("RECIPE_ALLOW_PATHS", "").split(os.pathsep) if path]
    return Selection(
        paths=tuple(Path(path) for path in given),
        set=overrides.texts(overrides.SET, reading.get("set", ())),
        only=overrides.texts(overrides.ONLY, reading.get("only", ())),
        allow=tuple(Path(path) for path in (*listed(reading.get("allow", ())), *from_environment)),
        to=tuple(listed(reading.get("to", ()))),
        cache=Path(cache) if cache is not None else None,
        jobs=jobs_of(str(given[0])),
        **{name: bool(reading.get(name)) for name in ("refresh", "locked", "frozen", "paranoid")},
    )


def listed(given: str | T | Iterable[str | T]) -> list[str | T]:
    """Return one value, or several, as a list: a single text or path is one value."""
    return [given] if isinstance(given, str | Path) else list(given)


def _refuse_contradictions(reading: Reading) -> None:
    chosen = [f"--{name}" for name in ("locked", "frozen", "refresh") if reading.get(name)]
    if len(chosen) > 1:
        raise UsageError(
            f"{' and '.join(chosen)} contradict each other",
            hint="--locked compares with the lock, --frozen delivers what it names, --refresh asks the hub: choose one",
        )


def refuse(loaded: LoadedRecipe) -> None:
    """Raise UserError where the recipe cannot work, whatever its steps are.

    The version of a runtime that builds only on certain machines, such as TensorRT, is no error here: another machine
    may have the version that the recipe requests.
    """
    feasibility.check(loaded)
    runtimes.of(loaded.recipe).refuse_installed(loaded, _installed)


def _installed(distribution: str) -> str | None:
    from engine.machine import tools  # few refusals ask for it

    version = tools.version_of(distribution)
    return None if version in (tools.MISSING, "") else version
