"""What was read while recipes were planned: a change of such a file may change the plan itself."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import all_suffixes
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from engine import plugins
from engine.builder import audit
from engine.builder.audit import Handler

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_EVENTS = ("open", "os.listdir", "os.scandir")
"""The audit events of Python for a file or folder that is read."""
_QUESTIONS = ("os.stat", "os.lstat", "os.access", "os.readlink")
"""The events of `audit` for a question about a file, such as whether the file exists."""
_FOLDERS_OF_SYSTEM = ("/proc", "/sys", "/dev")
"""Folders whose files have no time stamps that mean anything."""
_MARK_OF_STORE = f"{os.sep}cache{os.sep}format"
"""How the name of a file ends that the search for the root of a project reads; a snapshot compares the root itself."""
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_names: set[str] = set()
_environment: Mapping[str, str] = {}


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Note the files that Python opens and the folders that Python lists inside the `with` block.

    Also note the files that the code of a plugin only asks about, for example whether a file exists, and the
    environment. What earlier blocks have noted is forgotten.
    """
    global _environment  # noqa: PLW0603 - a process plans one selection at a time
    _names.clear()
    _environment = dict(os.environ)
    handlers: dict[str, Handler] = dict.fromkeys(_EVENTS, _on_read)
    audit.hand_to(handlers)
    try:
        if _packages():  # the list of plugins is read, too
            audit.hand_to(handlers | dict.fromkeys(_QUESTIONS, _on_question))
        yield
    finally:
        audit.hand_to({})


def names() -> frozenset[str]:
    """Return the absolute paths of all files and folders that the last planning in this process has read.

    A path is given as the reader wrote it and with its symbolic links followed.
    """
    return frozenset(_names | {os.path.realpath(name) for name in _names})


def environment() -> Mapping[str, str]:
    """Return the environment variables as they were when the last planning in this process began."""
    return _environment


def foreign(store: Path) -> frozenset[str]:
    """Return the names that planning read and that no other list of a build names.

    For example, a step of another package may read a file of settings when it takes its options from the recipe. The
    result leaves out the store at `store` and the folders of Python, of this program and of the system. It also leaves
    out the files of Python modules, because the rows for code name them.
    """
    places = (str(store), sys.prefix, sys.base_prefix, _OURS)
    known = (*_FOLDERS_OF_SYSTEM, *places, *map(os.path.realpath, places))
    searched = frozenset(map(os.path.abspath, sys.path_importer_cache))
    others = (name for name in names() if not name.endswith(_MARK_OF_STORE) and name not in searched)
    return frozenset(name for name in others if not _is_module(name) and not _is_in(name, known))


def _is_in(name: str, folders: Iterable[str]) -> bool:
    return any(name == folder or name.startswith(f"{folder}{os.sep}") for folder in folders)


def _is_module(name: str) -> bool:
    """Say whether a name is the file of a Python module."""
    return name.endswith(tuple(all_suffixes())) or "__pycache__" in name


def _on_read(arguments: tuple[Any, ...], _frame: FrameType) -> None:
    _note(arguments[0])


def _on_question(arguments: tuple[Any, ...], frame: FrameType) -> None:
    if _asks_for_plugin(frame):
        _note(arguments[0])


def _note(path: object) -> None:
    if isinstance(path, str | bytes | os.PathLike):
        _names.add(os.path.abspath(os.fsdecode(path)))


def _asks_for_plugin(frame: FrameType | None) -> bool:
    """Say whether the code of a plugin asks, itself or through the code of other packages that it calls."""
    packages = _packages()
    while frame is not None:
        if _package_of(frame.f_globals.get("__name__", "")) in packages:
            return True
        frame = frame.f_back
    return False


def _packages() -> frozenset[str]:
    """Return the top-level packages of all plugins."""
    return _packages_of(plugins.every())


@cache
def _packages_of(points: tuple[EntryPoint, ...]) -> frozenset[str]:
    return frozenset(_package_of(point.module) for point in points)


def _package_of(module: str) -> str:
    return module.partition(".")[0]
