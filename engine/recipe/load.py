"""Loads a recipe file: returns its validated variants, which know the place of each field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from engine.errors import RecipeError
from engine.recipe import extends
from engine.recipe.complaints import complaint
from engine.recipe.extends import Document, document
from engine.recipe.matrix import Variant, variants
from engine.recipe.node import Node, place, plain, put
from engine.recipe.overrides import ONLY, SET, assignments
from engine.recipe.paths import Bounds, portable_name, resolved
from engine.recipe.project import project_of
from engine.recipe.schema import Recipe
from engine.text.places import Position

if TYPE_CHECKING:
    from engine.recipe.path_ways import Mark


class LoadedRecipe(NamedTuple):
    """One variant of a recipe file.

    `path` is the path of the recipe file, as the caller wrote the path. `project` is the root folder of the recipe's
    project. `variant` is the label with the variant's values, "target.device=T4,precision=fp16", and empty without a
    matrix. `files` are the recipe's file and the files of its parents. `way` holds every folder and link on the way to
    these files, to the paths that the recipe names and to the allowed folders, as `recipe/path_ways.py` has them.
    """

    recipe: Recipe
    path: Path
    project: Path
    variant: str
    files: tuple[Path, ...]
    way: Mapping[str, Mark]
    root: Node

    def position(self, *path: str | int) -> Position | None:
        """Return the place of a field, such as `"validate", "cosine"`, in the text, or None for a missing field."""
        return place(self.root, path)

    def as_run_by(self, runtime: str) -> LoadedRecipe:
        """Return the recipe as if it named another runtime, with the places of its fields in the text as they are."""
        return self._replace(recipe=self.recipe.as_run_by(runtime))

    def portable_name(self, uri: str) -> str | None:
        """Return a name of the source `uri` that is the same on every machine, or None for a source not in the recipe.

        The portable name of a file or folder is its path from the project's root.
        """
        return portable_name(self.root, uri, self.project, self.path.parent)

    def error(
        self, what: str, *path: str | int, facts: Sequence[str] = (), hint: str = "", at_key: bool = False
    ) -> RecipeError:
        """Return the error about a field, at the place of the field or of the nearest section around a missing field.

        If `at_key` is true, the name of the field is wrong instead of the value, and the error points at the name.
        """
        at = self._nearest(path)
        section = self.root.find(path[:-1]) if at_key else None
        if section is not None:
            at = section.keys.get(str(path[-1]), at)
        facts = (*facts, f"variant: {self.variant}") if self.variant else facts
        return RecipeError(what, at, facts=facts, hint=hint)

    def _nearest(self, path: Sequence[str | int]) -> Position:
        """Return the place of a field, or of the nearest section around a missing field."""
        for end in range(len(path), 0, -1):
            if (at := place(self.root, path[:end])) is not None:
                return at
        return self.root.at

    def refuse_value(self, path: Sequence[str], value: Node) -> None:
        """Raise RecipeError where the field at `path` cannot have a value, whatever the other fields are."""
        with suppress(LookupError):
            try:
                _validated(put(self.root, path, value), self.files)
            except RecipeError as error:
                if error.position == value.at:
                    raise

    def complaint(self, error: ValidationError, *path: str | int) -> RecipeError:
        """Return a pydantic validation error about the part of the recipe at `path` as a RecipeError in plain words."""
        return complaint(error, self.root, self.files, path)


def load(
    path: Path,
    *,
    set: Sequence[str] = (),  # noqa: A002  the command line's word
    only: Sequence[str] = (),
    allow: Sequence[Path] = (),
    must_exist: bool = True,
) -> tuple[LoadedRecipe, ...]:
    """Read a recipe file and return its variants. Raises RecipeError for the first error of the recipe.

    `set` and `only` hold the arguments K=V of the options `--set` and `--only`. Paths in the recipe may lead into the
    recipe's project and into the folders `allow`. Only the recipe and its parents are read; of files that the recipe
    names, only the kind is checked. If `must_exist` is false, the files that the recipe names may be missing.
    """
    return opened(path, allow=allow).variants(set=set, only=only, must_exist=must_exist)


class OpenedRecipe(NamedTuple):
    """A recipe file that was read and merged with its parents, and whose variants are not validated yet."""

    path: Path
    document: Document
    bounds: Bounds

    @property
    def has_name(self) -> bool:
        """Whether the recipe or one of its parents has a name."""
        return self.document.root.child("name") is not None

    def variants(
        self,
        *,
        set: Sequence[str] = (),  # noqa: A002  the command line's word
        only: Sequence[str] = (),
        must_exist: bool = True,
    ) -> tuple[LoadedRecipe, ...]:
        """Return the validated variants, as `load` does. Raises RecipeError, also for an abstract recipe."""
        if self.document.abstract is not None:
            raise extends.abstract_refusal(self.document.abstract)
        selected = variants(self.document.root, assignments(SET, set), assignments(ONLY, only))
        return tuple(self._loaded(variant, must_exist=must_exist) for variant in selected)

    def _loaded(self, variant: Variant, *, must_exist: bool) -> LoadedRecipe:
        files = self.document.files
        _validated(variant.root, files)
        root = resolved(variant.root, self.bounds, self.path.parent, must_exist=must_exist)
        recipe = _validated(root, files)
        return LoadedRecipe(recipe, self.path, self.bounds.project, variant.label, files, self.bounds.way, root)


def opened(path: Path, *, allow: Sequence[Path] = ()) -> OpenedRecipe:
    """Read a recipe file and its parents. Raises RecipeError."""
    bounds = Bounds(project_of(path), tuple(allow))
    for each in (path, *allow):
        bounds.walk(each)
    return OpenedRecipe(path, document(path, bounds), bounds)


def _validated(root: Node, files: Sequence[Path]) -> Recipe:
    try:
        return Recipe.model_validate(plain(root), by_alias=True, by_name=False)
    except ValidationError as error:
        raise complaint(error, root, files) from None
