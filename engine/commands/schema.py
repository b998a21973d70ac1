"""Print the JSON Schema of recipes, for editors."""

from __future__ import annotations

import argparse
import json

from engine.errors import Exit


def arguments(_parser: argparse.ArgumentParser) -> None:
    """Declare no arguments: `recipe schema` takes none."""


def run(_arguments: argparse.Namespace) -> Exit:
    """Print the schema."""
    from engine.builder.recipe_schema import recipe_schema

    print(json.dumps(recipe_schema(), indent=1))
    return Exit.OK
