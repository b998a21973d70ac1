"""`extends`: merges a recipe with its parents. Each merged value keeps its place in the file that the value is from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from engine.errors import RecipeError
from engine.recipe import near_files
from engine.recipe.complaints import description
from engine.recipe.node import Node, merged, without
from engine.recipe.paths import Bounds
from engine.recipe.recipe_file import read
from engine.recipe.yaml_text import parse
from engine.text.places import Position, Text

MAX_PARENTS = 16
"""Upper limit of the number of files that a recipe extends, directly and through its parents."""
VERSION = 1
"""The version of the recipe language that this program reads."""
VERSION_FIELD = "recipe"
"""The field in which a YAML file names its version of the recipe language; a merged recipe has none."""
ABSTRACT = "abstract"
"""The field by which a YAML file says that it is only extended. Recipes that extend the file do not inherit it."""


class Document(NamedTuple):
    """A recipe merged with its parents.

    `files` lists the recipe's own file first, then the files of the recipe's parents. `abstract` is the place of
    `abstract: true` in the recipe's own file.
    """

    root: Node
    files: tuple[Path, ...]
    abstract: Position | None = None


def document(path: Path, bounds: Bounds) -> Document:
    """Read a recipe and all files that it extends, and merge them. Raises RecipeError."""
    layers: list[Node] = []
    abstract_places: list[Position | None] = []
    files: list[Path] = []
    file: Path | None = path
    layer: Node | None = None
    while file is not None:
        text = _read(file, layer.child("extends") if layer else None)
        files.append(file)
        layer = parse(text)
        if layer.mapping is None:
            what = f"{text.name} holds {description(layer)}; a recipe is a mapping"
            raise RecipeError(what, layer.at, hint="a recipe starts with: name: my-model")
        _check_version(layer)
        abstract_places.append(_abstract_place(layer))
        layers.append(without(layer, VERSION_FIELD, ABSTRACT, "extends"))
        file = _parent(layer, files, bounds)
    root = layers.pop()
    while layers:
        root = merged(root, layers.pop())
    return Document(root, tuple(files), abstract_places[0])


def _read(file: Path, extends: Node | None) -> Text:
    """Read a recipe. If `extends` of another recipe names the file, an error has the place of that field, too."""
    try:
        return read(file, str(file))
    except RecipeError as error:
        facts = [*error.facts, *([f"named by `extends` at {extends.at}"] if extends else [])]
        raise RecipeError(error.what, error.position, facts=facts, hint=error.hint) from None


def _check_version(layer: Node) -> None:
    node = layer.child(VERSION_FIELD)
    if node is not None and (type(node.value) is not int or node.value != VERSION):
        hint = f"write `{VERSION_FIELD}: {VERSION}`, or install the release that reads it"
        what = f"`{VERSION_FIELD}` is {description(node)}; this program reads version {VERSION} of recipes"
        raise RecipeError(what, node.at, hint=hint)


def _parent(layer: Node, files: Sequence[Path], bounds: Bounds) -> Path | None:
    """Return the file that a recipe extends, or None. Raises RecipeError."""
    node = layer.child("extends")
    if node is None:
        return None
    if not isinstance(node.value, str) or not node.value.isprintable() or not node.value:
        what = f"`extends` is {description(node)}; one path to a recipe is meant"
        raise RecipeError(what, node.at, hint="extends: base.yaml")
    parent = files[-1].parent / node.value
    real = os.path.realpath(parent)
    if real in map(os.path.realpath, files):
        chain = " -> ".join([*(file.name for file in files), parent.name])
        raise RecipeError("`extends` goes in a circle", node.at, facts=[chain], hint="leave one of them out")
    if len(files) > MAX_PARENTS:
        raise RecipeError(f"`extends` goes on for more than {MAX_PARENTS} files", node.at, hint="merge some of them")
    bounds.check(parent, node.at)
    if not os.path.lexists(parent):
        raise RecipeError(f"`extends`: there is no file {parent}", node.at, hint=near_files.hint(parent))
    return parent


def _abstract_place(layer: Node) -> Position | None:
    """Return the place of `abstract: true` in a YAML file, or None. Raises RecipeError for another value."""
    node = layer.child(ABSTRACT)
    if node is None or node.value is False:
        return None
    if node.value is not True:
        raise RecipeError(f"`{ABSTRACT}` is {description(node)}; true or false is meant", node.at)
    return layer.keys[ABSTRACT]


def abstract_refusal(at: Position) -> RecipeError:
    """Return the error for a command about nothing but an abstract recipe."""
    return RecipeError(
        "this recipe is abstract: other recipes extend it, and it makes no package of its own",
        at,
        hint=f"name a recipe that extends it, or take out `{ABSTRACT}: true`",
    )
