"""The command line of the program: each command has a module of its own."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from engine.commands import hints
from engine.errors import UsageError
from engine.system import colors, folders
from engine.text import distribution

COMMANDS = (
    "build",
    "why",
    "new",
    "graph",
    "check",
    "list",
    "lock",
    "show",
    "report",
    "diff",
    "history",
    "package",
    "serve",
    "publish",
    "query",
    "loadtest",
    "prove",
    "tune",
    "logs",
    "layers",
    "bisect",
    "cache",
    "gpus",
    "steps",
    "schema",
    "doctor",
    "completion",
)


_HAND_ON = ("serve",)
"""The commands that hand on what stands behind `--`."""
_GLOBAL = ("-h", "--help", "--version")
"""The options that stand in place of a command."""


class _Parser(argparse.ArgumentParser):
    def __init__(self, **settings: Any) -> None:
        # argparse makes a formatter for each declared argument; without a width, each asks the terminal for its own.
        super().__init__(**settings, formatter_class=partial(argparse.HelpFormatter, width=80))

    def format_help(self) -> str:
        self.formatter_class = argparse.HelpFormatter
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=hints.of_message(self, message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [*action.choices]
            what = f"argument {'/'.join(action.option_strings) or action.metavar}: invalid choice: {value!r}"
            raise UsageError(what, hint=hints.of_choice(action, value, choices))


class _ShowVersion(argparse.Action):
    """Prints the version and ends the program. Only this option looks the version up, because that takes long."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(distribution.running())
        parser.exit()


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments; their `run` executes the command. Raises UsageError; `--help` ends the program."""
    words, further = _without_further(words)
    _refuse_unknown(words)
    parser, by_name = _parser(words)
    parsed, rest = parser.parse_known_args(words)
    if rest:
        what, hint = hints.of_unknown(_innermost(by_name.get(words[0], parser), words[1:]), rest)
        raise UsageError(what, hint=hint)
    parsed.words = [*words]  # `list` is a module here: that of the command
    parsed.further = further
    parsed.changes = None  # `recipe build` may get the files that changed since its last snapshot
    return parsed


def complete(line: str) -> None:
    """Answer the shell that asks how the command line `line` goes on."""
    from engine.commands import completion

    parser, _ = _parser(line.split()[1:])
    completion.answer(parser)


def _parser(words: Sequence[str]) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of the program, and those of commands by name: of all, or only of the one that `words` name."""
    parser = _Parser(
        prog="recipe",
        description="Make for inference artifacts: a YAML recipe in, a validated, measured Triton package out.",
        epilog="exit codes: 0 built or up to date, 1 a step failed, 2 the recipe or the command line is wrong, "
        "3 the rest waits for hardware, 4 validation or a budget failed, 130 interrupted",
        allow_abbrev=False,
    )
    by_name: dict[str, argparse.ArgumentParser] = {}
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show program's version number and exit")
    _add_folder(parser)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    # A command line that begins with a command needs no other command.
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        command = importlib.import_module(f"engine.commands.{name}")
        about = next(iter((command.__doc__ or "").splitlines()), "")  # Python's option -OO drops docstrings
        own = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        own.add_argument(colors.OPTION, choices=colors.CHOICES, help="colour what is printed (default: on a terminal)")
        _add_folder(own)
        own.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.arguments(own)
        own.set_defaults(run=command.run)
        by_name[name] = own
    return parser, by_name


def _add_folder(parser: argparse.ArgumentParser) -> None:
    """Declare `-C` for the help: `folders.enter` has taken it out of the command line."""
    parser.add_argument(folders.OPTION, metavar="DIR", help="change to this folder first")


def _without_further(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words for the program, and those behind `--`, for a command that hands them on to another program."""
    if "--" not in words or words[0] not in _HAND_ON:
        return words, ()
    end = [*words].index("--")
    return words[:end], words[end + 1 :]


def _refuse_unknown(words: Sequence[str]) -> None:
    """Raise UsageError where no command is named, with what to do first, or where no command has that name."""
    if not words:
        first = [
            "recipe doctor               what this machine can build",
            "recipe new MODEL            write a first recipe for a model, such as hf:OWNER/NAME",
            "recipe check RECIPE.yaml    whether a recipe is right, before anything is built",
            "recipe build RECIPE.yaml    build, validate, measure and package it",
            "recipe serve RECIPE.yaml    serve the package on a real Triton server",
        ]
        raise UsageError("COMMAND is missing; the first ones:", first, "recipe --help lists all commands")
    if words[0] not in (*COMMANDS, *_GLOBAL):
        raise UsageError(f"argument COMMAND: invalid choice: {words[0]!r}", hint=hints.of_command(words, COMMANDS))


def _innermost(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the action that `words` name, as in `recipe cache gc`; else `parser`."""
    for action in parser._actions:  # noqa: SLF001  argparse has no list of its actions
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return next((action.choices[word] for word in words if word in action.choices), parser)
    return parser
