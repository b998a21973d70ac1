"""Print the script that completes commands, options, steps and recipes in bash, zsh or fish."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from engine.errors import Exit, UsageError
from engine.text import distribution

SHELLS = ("bash", "zsh", "fish")
LIBRARY = "argcomplete"
_PROGRAM = "recipe"
_RECIPES = (".yaml", ".yml")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe completion`."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run(arguments: argparse.Namespace) -> Exit:
    """Print the script for a shell. Raises UsageError where the library that completes is missing."""
    if importlib.util.find_spec(LIBRARY) is None:
        what = f"completion needs the Python package {LIBRARY}, which is not installed"
        raise UsageError(what, hint=distribution.install("completion"))
    from argcomplete.shell_integration import shellcode

    print(shellcode([_PROGRAM], shell=arguments.shell))
    return Exit.OK


def answer(parser: argparse.ArgumentParser) -> None:
    """Answer the shell that asks how the command line in the variable COMP_LINE goes on, and end the program."""
    import argcomplete

    for each in _parsers(parser):
        for action in each._actions:  # noqa: SLF001  argparse has no list of its actions
            completer = _COMPLETERS.get(str(action.metavar))
            if completer is not None:
                action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _parsers(parser: argparse.ArgumentParser) -> Iterable[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                yield from _parsers(below)


def _recipes(prefix: str, **_: object) -> list[str]:
    folder, _slash, start = prefix.rpartition("/")
    path = Path(folder) if folder or not prefix.startswith("/") else Path("/")
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError:
        return []
    head = f"{folder}/" if folder or prefix.startswith("/") else ""
    names = [entry for entry in entries if entry.name.startswith(start) and (start or not entry.name.startswith("."))]
    folders = [f"{head}{entry.name}/" for entry in names if entry.is_dir()]
    return [f"{head}{entry.name}" for entry in names if entry.name.endswith(_RECIPES)] + folders


def _steps(**_: object) -> Iterable[str]:
    from engine.builder import registry

    return sorted(registry.steps())


def _devices(**_: object) -> Iterable[str]:
    from engine.gpus import CATALOGUE

    return ["cpu", *(gpu.name for gpu in CATALOGUE)]


def _tasks(**_: object) -> Iterable[str]:
    from engine.tasks import registry

    return registry.names()


def _fields(prefix: str, **_: object) -> Iterable[str]:
    """Return the fields of a recipe that `--set` and `--only` can name, with the sign behind them."""
    from engine.recipe import outline

    if "=" in prefix:
        return []
    above = prefix.split(".")[:-1]
    return [f"{outline.dotted([*above, name])}=" for name in outline.fields_at(above) or ()]


_COMPLETERS: dict[str, Callable[..., Iterable[str]]] = {
    "RECIPE": _recipes,
    "STEP": _steps,
    "NAME": _devices,
    "TASK": _tasks,
    "K=V": _fields,
}
"""The name of a value in the help -> a function that returns values that begin with the given text."""
