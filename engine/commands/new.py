"""Write the first recipe of a model: commented, with samples, ready to build; change no file that exists."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import Exit, UsageError

if TYPE_CHECKING:
    from engine.drafts.draft import Draft
    from engine.drafts.foreign import Foreign


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe new`."""
    parser.add_argument("model", metavar="MODEL", nargs="?",
                        help="hf:OWNER/NAME, timm:NAME, a directory of transformers or timm, "
                        "or an .onnx file")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="the recipe to write (default: NAME.yaml)")
    parser.add_argument("--device", metavar="NAME", help="cpu, or a GPU (`recipe gpus`); default: this machine's")
    settings = parser.add_mutually_exclusive_group()
    settings.add_argument("--from-trtexec", metavar="COMMAND", help="take the settings of a trtexec command, quoted")
    settings.add_argument("--from-pbtxt", metavar="FILE", type=Path, help="take the settings of a config.pbtxt")
    settings.add_argument(
        "--from-optimum", metavar="COMMAND", help="take the settings of an optimum-cli command, quoted"
    )
    parser.add_argument("--task", metavar="TASK", help="the model's task, if its files do not name it")


def run(arguments: argparse.Namespace) -> Exit:
    """Write the recipe and its samples, and check the recipe. Raises UserError."""
    from engine.drafts import model, place

    settings = _settings(arguments)
    model_named = arguments.model or (settings.model if settings is not None else None)
    if model_named is None and settings is not None:
        raise UsageError(
            f"the settings of {settings.tool} do not say where the model is",
            hint="name it: recipe new MODEL, and the option behind it",
        )
    if model_named is None:
        raise UsageError("no model is named", hint="recipe new hf:OWNER/NAME, or a model's directory, or an .onnx file")
    folder = place.recipe_file("any", arguments.output).parent
    named = model.source_of(model_named, folder)
    recipe = place.recipe_file(place.name_of(named.name), arguments.output)
    place.refuse_existing(recipe)
    on = arguments.device or (_device(settings) if settings is not None else None)
    task = arguments.task or (settings.fields.get("model.task") if settings is not None else None)
    draft = model.draft(named, recipe, task=task, on=on, settings=settings)
    for each in draft.unmapped:
        print(f"not taken over: {each}")
    for guess in draft.guesses:
        print(guess)
    _write(draft, recipe, named.path)
    return Exit.OK


def _settings(arguments: argparse.Namespace) -> Foreign | None:
    """Return the settings of another tool that the command line names. Raises UsageError."""
    from engine.drafts import optimum, pbtxt, trtexec

    if arguments.from_trtexec is not None:
        return trtexec.read(arguments.from_trtexec)
    if arguments.from_pbtxt is not None:
        return pbtxt.read(arguments.from_pbtxt)
    if arguments.from_optimum is None:
        return None
    settings = optimum.read(arguments.from_optimum)
    settings.model = optimum.source(settings.model) if settings.model else None
    return settings


def _device(settings: Foreign) -> str:
    """Return the device for the settings of another tool: the CPU, or this machine's GPU. Raises UsageError."""
    from engine.drafts import device

    if settings.device is not None:
        return settings.device
    gpu = device.local_gpu()
    if gpu is None:
        what = f"the settings of {settings.tool} are for a GPU, and this machine shows none"
        raise UsageError(what, hint="name the GPU that the package is for: --device T4; `recipe gpus` lists them")
    return gpu


def _write(draft: Draft, recipe: Path, model: Path | None) -> None:
    """Write the recipe, check it, and print what comes next. Raises UserError, and leaves no new file then."""
    from engine.builder.recipe_check import examine
    from engine.builder.selection import select
    from engine.drafts import place
    from engine.recipe.project import project_of

    written = place.write(draft, recipe, model)
    try:
        allowed = [Path(os.path.realpath(model)).parent] if model and place.outside(recipe, model) else []
        examine(select([recipe], allow=allowed))
    except BaseException:
        place.take_back(written)
        raise
    for path in written:
        print(f"wrote {path}")
    options = "".join(f" --allow-path {shlex.quote(str(each))}" for each in allowed)
    if allowed:
        print(f"the model lies outside the project {project_of(recipe)}: commands need{options}, or copy it into there")
    print(f"{recipe} passes `recipe check`; next: recipe build {shlex.quote(str(recipe))}{options}")
