"""The command line of the program: each command has a module of its own."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import NoReturn

from engine.errors import UsageError
from engine.text import distribution

COMMANDS = (
    "build",
    "why",
    "new",
    "graph",
    "check",
    "lock",
    "show",
    "report",
    "diff",
    "history",
    "serve",
    "publish",
    "query",
    "loadtest",
    "logs",
    "layers",
    "cache",
    "gpus",
    "steps",
    "schema",
    "doctor",
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"{self.prog} --help")


class _ShowVersion(argparse.Action):
    """Prints the version and ends the program. Only this option looks the version up, because that takes long."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(version())
        parser.exit()


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments of a command line; their field `run` is the function that executes the command.

    Raises UsageError for a wrong command line. The option `--help` prints a help text and ends the program.
    """
    parser = _Parser(
        prog="recipe",
        description="Make for inference artifacts: a YAML recipe in, a validated, measured Triton package out.",
        epilog="exit codes: 0 built or up to date, 1 a step failed, 2 the recipe or the command line is wrong, "
        "3 the rest waits for hardware, 4 validation or a budget failed, 130 interrupted",
        allow_abbrev=False,
    )
    _refuse_unknown(words)
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    # A command line that begins with a command needs no other command.
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        command = importlib.import_module(f"engine.commands.{name}")
        about = next(iter((command.__doc__ or "").splitlines()), "")  # Python's option -OO drops docstrings
        own = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        own.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.arguments(own)
        own.set_defaults(run=command.run)
    parsed = parser.parse_args(words)
    parsed.words = list(words)
    parsed.changes = None  # `recipe build` may get the files that changed since its last snapshot
    return parsed


def _refuse_unknown(words: Sequence[str]) -> None:
    """Raise UsageError where no command is named, with what to do first, or where no command has that name."""
    if not words:
        first = [
            "recipe doctor               what this machine can build",
            "recipe check RECIPE.yaml    whether a recipe is right, before anything is built",
            "recipe build RECIPE.yaml    build, validate, measure and package it",
            "recipe serve RECIPE.yaml    serve the package on a real Triton server",
        ]
        raise UsageError("COMMAND is missing; the first ones:", first, "recipe --help lists all commands")
    if not words[0].startswith("-") and words[0] not in COMMANDS:
        from engine.text import suggestions

        near = suggestions.nearest(words[0], COMMANDS)
        hint = suggestions.did_you_mean(f"`recipe {near[0]}`") if near else "recipe --help lists all commands"
        raise UsageError(f"argument COMMAND: invalid choice: {words[0]!r}", hint=hint)


def version() -> str:
    """Return the name and the version of the program, as text."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"recipe {version(distribution.NAME)}"
    except PackageNotFoundError:
        return "recipe, run from its source tree"
