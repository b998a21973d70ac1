"""Write the first recipe of a model: commented, with samples, ready to build; change no file that exists."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import Exit, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.drafts.draft import Draft


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe new`."""
    parser.add_argument("model", metavar="MODEL", nargs="?",
                        help="hf:OWNER/NAME, timm:NAME, a model's directory, or an .onnx file")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="the recipe to write (default: NAME.yaml)")
    parser.add_argument("--device", metavar="NAME", help="cpu, or a GPU (`recipe gpus`); default: this machine's")
    parser.add_argument("--task", metavar="TASK", help="the model's task, if its files do not name it")


def run(arguments: argparse.Namespace) -> Exit:
    """Write the recipe and its samples, and check the recipe. Raises UserError."""
    from engine.drafts import model, place, source

    if arguments.model is None:
        raise UsageError("no model is named", hint="recipe new hf:OWNER/NAME, or a model's directory, or an .onnx file")
    folder = place.recipe_file("any", arguments.output).parent
    named = source.of(arguments.model, folder)
    recipe = place.recipe_file(place.name_of(named.name), arguments.output)
    place.refuse_existing(recipe)
    draft = model.draft(named, recipe, task=arguments.task, on=arguments.device)
    _write(draft, recipe, allowed=_outside(recipe, [named.place] if named.place else []))
    return Exit.OK


def _write(draft: Draft, recipe: Path, *, allowed: Sequence[Path]) -> None:
    """Write the recipe, check it, and print what comes next."""
    from engine.builder.examining import examine
    from engine.builder.selection import select
    from engine.drafts import place

    for path in place.write(draft, recipe):
        print(f"wrote {path}")
    examine(select([recipe], allow=allowed))
    options = "".join(f" --allow-path {each}" for each in allowed)
    print(f"{recipe} passes `recipe check`; next: recipe build {recipe}{options}")


def _outside(recipe: Path, places: Sequence[Path]) -> list[Path]:
    """Return the folders of models that lie outside the recipe's project."""
    from engine.recipe.project import project_of

    project = project_of(recipe)
    reals = [Path(os.path.realpath(place)) for place in places]
    return [real.parent for real in reals if not real.is_relative_to(project)]
