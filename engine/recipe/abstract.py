"""Abstract recipes: files that other recipes extend, and that make no package of their own."""

from __future__ import annotations

from engine.errors import RecipeError
from engine.recipe.complaints import description
from engine.recipe.node import Node
from engine.text.places import Position

FIELD = "abstract"
"""The field by which a YAML file says that it is only extended. Recipes that extend the file do not inherit it."""


def place_of(layer: Node) -> Position | None:
    """Return the place of `abstract: true` in a YAML file, or None. Raises RecipeError for another value."""
    node = layer.child(FIELD)
    if node is None or node.value is False:
        return None
    if node.value is not True:
        raise RecipeError(f"`{FIELD}` is {description(node)}; true or false is meant", node.at)
    return layer.keys[FIELD]


def refusal(at: Position) -> RecipeError:
    """Return the error for a command about nothing but an abstract recipe."""
    return RecipeError(
        "this recipe is abstract: other recipes extend it, and it makes no package of its own",
        at,
        hint=f"name a recipe that extends it, or take out `{FIELD}: true`",
    )
