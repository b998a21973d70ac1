"""What was read while recipes were planned: a change of such a file or variable may change the plan itself."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.machinery import all_suffixes
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from engine import plugins

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_EVENTS = ("open", "os.listdir", "os.scandir")
"""The audit events of Python for a file or folder that is read."""
_QUESTIONS = ("stat", "lstat", "access", "readlink")
"""Functions of the module `os` that tell about a file, for which Python raises no audit event."""
_FOLDERS_OF_SYSTEM = ("/proc", "/sys", "/dev")
"""Folders whose files have no time stamps that mean anything."""
_MARK_OF_STORE = f"{os.sep}cache{os.sep}format"
"""How the name of a file ends that the search for the root of a project reads; a snapshot compares the root itself."""
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_names: set[str] = set()
_variables: set[str] = set()
_listening = False


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Note the files that Python opens and the folders that Python lists inside the `with` block.

    Also note the files that the code of a plugin only asks about, for example whether a file exists, and the
    environment variables that the code of a plugin reads. What earlier blocks have noted is forgotten.
    """
    global _listening  # noqa: PLW0603 - an audit hook cannot be removed, so it is told when to listen
    _listen()
    _names.clear()
    _variables.clear()
    _listening = True
    try:
        with _questions_noted() if _packages() else contextlib.nullcontext():
            yield
    finally:
        _listening = False


def names() -> frozenset[str]:
    """Return the absolute paths of all files and folders that the last planning in this process has read.

    A path is given as the reader wrote it and with its symbolic links followed.
    """
    return frozenset(_names | {os.path.realpath(name) for name in _names})


def variables() -> frozenset[str]:
    """Return the environment variables that plugins have read in the last planning in this process."""
    return frozenset(_variables)


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


@cache
def _listen() -> None:
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[object, ...]) -> None:
    if _listening and event in _EVENTS:
        _note(arguments[0])


def _note(path: object) -> None:
    if isinstance(path, str | bytes | os.PathLike):
        _names.add(os.path.abspath(os.fsdecode(path)))


@contextlib.contextmanager
def _questions_noted() -> Iterator[None]:
    """Note what plugins ask about files, and which environment variables plugins read."""
    functions = {name: getattr(os, name) for name in _QUESTIONS}
    kind = os.environ.__class__
    try:
        for name, function in functions.items():
            setattr(os, name, _noting(function))
        os.environ.__class__ = _NotedEnvironment
        yield
    finally:
        os.environ.__class__ = kind
        for name, function in functions.items():
            setattr(os, name, function)


def _noting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the module `os` that notes the path that a plugin asks about."""

    @functools.wraps(function)
    def noting(path: Any, *arguments: Any, **named: Any) -> Any:
        if _asks_for_plugin(sys._getframe(1)):  # noqa: SLF001
            _note(path)
        return function(path, *arguments, **named)

    return noting


class _NotedEnvironment(os._Environ):  # type: ignore[type-arg]  # noqa: SLF001  the class of os.environ has no public name
    def __getitem__(self, key: str) -> str:
        if _asks_for_plugin(sys._getframe(1)):  # noqa: SLF001
            _variables.add(key)
        return super().__getitem__(key)  # type: ignore[no-any-return]


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
