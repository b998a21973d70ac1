"""The options that several commands share."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import hints

if TYPE_CHECKING:
    from engine.builder.selection import Reading


def add_recipes(
    parser: argparse.ArgumentParser,
    *,
    many: bool = True,
    needed: bool = True,
    whole: bool = False,
    about: str = "a recipe's YAML file",
) -> None:
    """Add RECIPE and the options for reading recipes; `whole`: with all variants, without `--set` and `--only`."""
    count = ("+" if needed else "*") if many else 1
    parser.add_argument("recipes", metavar="RECIPE", nargs=count, type=partial(_recipe, parser), help=about)
    add_reading(parser, whole=whole)


def add_reading(parser: argparse.ArgumentParser, *, whole: bool = False) -> None:
    """Add the options for reading recipes: those of `add_recipes` without the argument RECIPE."""
    if not whole:
        parser.add_argument(
            "--set", metavar="K=V", action="append", default=[], help="override a field: precision=int8"
        )
        parser.add_argument("--only", metavar="K=V", action="append", default=[],
                            help="of a matrix, only these variants: target.device=T4")  # fmt: skip
    parser.add_argument("--allow-path", metavar="DIR", action="append", default=[], type=Path,
                        help="let recipes read below DIR, outside their project (also RECIPE_ALLOW_PATHS)")  # fmt: skip
    add_cache(parser)


def _recipe(parser: argparse.ArgumentParser, word: str) -> Path:
    """Return the path of a recipe. Raises UsageError for a word that is no path but a field's value or a step."""
    path = Path(word)
    if path.suffix not in (".yaml", ".yml") and not os.path.lexists(path):
        hints.refuse_in_place_of_recipe(word, parser)
    return path


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the folder of the store."""
    parser.add_argument(
        "--cache", metavar="DIR", type=Path, help="the store (default: RECIPE_CACHE, or the project's cache/)"
    )


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add the option to print JSON."""
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


def add_step(parser: argparse.ArgumentParser) -> None:
    """Add the argument STEP, which chooses one job of the recipe."""
    parser.add_argument("step", metavar="STEP", nargs="?", help="only this job")


def add_refresh(parser: argparse.ArgumentParser) -> None:
    """Add the option to look up branches and tags of the hub again."""
    parser.add_argument("--refresh", action="store_true", help="look up floating revisions again")


def add_frozen(parser: argparse.ArgumentParser) -> None:
    """Add the option to build from the lock alone."""
    parser.add_argument("--frozen", action="store_true", help="deliver what the lock names, else exit 2")


def reading(arguments: argparse.Namespace) -> Reading:
    """Return the values of the options for reading recipes, as keyword arguments for the functions of `engine.api`."""
    return {
        "set": getattr(arguments, "set", ()),
        "only": getattr(arguments, "only", ()),
        "allow": arguments.allow_path,
        "cache": arguments.cache,
        "to": getattr(arguments, "to", ()),
        "refresh": getattr(arguments, "refresh", False),
        "locked": getattr(arguments, "locked", False),
        "frozen": getattr(arguments, "frozen", False),
        "paranoid": getattr(arguments, "paranoid", False),
    }
