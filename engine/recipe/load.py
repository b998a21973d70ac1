"""A recipe file -> its variants, validated, with places for errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from engine.errors import RecipeError
from engine.recipe.complaints import complaint
from engine.recipe.expand import Variant, variants
from engine.recipe.extends import Document, document
from engine.recipe.node import Node, place, plain
from engine.recipe.overrides import ONLY, SET, assignments
from engine.recipe.paths import Bounds, resolved, said
from engine.recipe.project import project_of
from engine.recipe.schema import Recipe
from engine.text.places import Position


@dataclass(frozen=True)
class LoadedRecipe:
    """One variant of a recipe file.

    `path` is the file as it was given, `project` the root of its project, `variant` the values of its matrix
    ("target.device=T4,precision=fp16", empty without one), `files` the YAML files that were read,
    `links` the paths that they say, made absolute, with where these lead once symbolic links are followed.
    """

    recipe: Recipe
    path: Path
    project: Path
    variant: str
    files: tuple[Path, ...]
    links: Mapping[str, str]
    _root: Node = field(repr=False)

    def position(self, *path: str | int) -> Position | None:
        """Return where a field of the YAML is said (`"validate", "cosine"`); None where it is not."""
        return place(self._root, path)

    def said(self, uri: str) -> str | None:
        """Return how the recipe names what became `uri`, the same on every machine; None for what it does not name."""
        return said(self._root, uri, self.project, self.path.parent)

    def error(
        self, what: str, *path: str | int, facts: Sequence[str] = (), hint: str = "", at_key: bool = False
    ) -> RecipeError:
        """Return the error about a field, at its place or at that of the nearest section around it.

        With `at_key` it is the name that is wrong, not what it says: the place is the name's.
        """
        near = next(found for end in range(len(path), -1, -1) if (found := place(self._root, path[:end])))
        section = self._root.find(path[:-1]) if at_key else None
        near = section.keys.get(str(path[-1]), near) if section is not None else near
        facts = (*facts, f"variant: {self.variant}") if self.variant else facts
        return RecipeError(what, near, facts=facts, hint=hint)

    def complaint(self, error: ValidationError, *path: str | int) -> RecipeError:
        """Return what a model of pydantic's finds wrong with the part at `path`, in plain words, at its place."""
        return complaint(error, self._root, self.files, path)


def load(
    path: Path,
    *,
    set: Sequence[str] = (),  # noqa: A002  the command line's word
    only: Sequence[str] = (),
    allow: Sequence[Path] = (),
    must_exist: bool = True,
) -> tuple[LoadedRecipe, ...]:
    """Read a recipe file and return its variants. Raises RecipeError at the first place that is wrong.

    `set` and `only` are K=V as on the command line; `allow` are folders outside the project that paths may lead into.
    Nothing but the recipe, its parents and the existence of the files that it names is looked at; with `must_exist`
    false they may be missing.
    """
    project = project_of(path)
    bounds = Bounds(project, tuple(allow))
    read = document(path, bounds)
    sets = assignments(SET, set)
    wanted = assignments(ONLY, only)
    found = variants(read.root, sets, wanted)
    return tuple(_loaded(variant, read, bounds, path, must_exist=must_exist) for variant in found)


def _loaded(variant: Variant, read: Document, bounds: Bounds, path: Path, *, must_exist: bool) -> LoadedRecipe:
    _validated(variant.root, read.files)
    root, links = resolved(variant.root, bounds, path.parent, must_exist=must_exist)
    recipe = _validated(root, read.files)
    return LoadedRecipe(recipe, path, bounds.project, variant.label, read.files, links, root)


def _validated(root: Node, files: Sequence[Path]) -> Recipe:
    try:
        return Recipe.model_validate(plain(root), by_alias=True, by_name=False)
    except ValidationError as error:
        raise complaint(error, root, files) from None


def json_schema() -> dict[str, object]:
    """Return the JSON Schema of a recipe file, for editors."""
    from engine.recipe.editor import editor_schema

    return editor_schema()
