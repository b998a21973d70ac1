"""What was read while recipes were planned: a change of such a file may change the plan itself."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import all_suffixes
from pathlib import Path
from types import FrameType
from typing import Any

from engine import plugins
from engine.builder import audit

_EVENTS = ("open", "os.listdir", "os.scandir")
"""The audit events of Python for a file or folder that is read."""
_QUESTIONS = ("os.stat", "os.lstat", "os.access", "os.readlink")
"""The events of `audit` for a question about a file, such as whether the file exists."""
_FOLDERS_OF_SYSTEM = ("/proc", "/sys", "/dev")
"""Folders whose files have no time stamps that mean anything."""
_UNWATCHED = (f"{os.sep}cache{os.sep}format", *all_suffixes())
"""How the names end of the file that the search for the root of a project reads, and of Python modules.

A snapshot compares the root itself.
"""
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
    packages = {_package_of(point.module) for point in plugins.every()}

    def on_question(arguments: tuple[Any, ...], frame: FrameType) -> None:
        """Note a path about which the code of a plugin asks, itself or through the packages that it calls."""
        caller: FrameType | None = frame
        while caller is not None and _package_of(caller.f_globals.get("__name__", "")) not in packages:
            caller = caller.f_back
        if caller is not None:
            _on_read(arguments, frame)

    questions = _QUESTIONS if packages else ()
    audit.hand_to({**dict.fromkeys(_EVENTS, _on_read), **dict.fromkeys(questions, on_question)})
    try:
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
    inside = tuple(os.path.join(folder, "") for folder in known)
    searched = {*known, *map(os.path.abspath, sys.path_importer_cache)}
    others = (name for name in names() if name not in searched and not name.startswith(inside))
    return frozenset(name for name in others if not name.endswith(_UNWATCHED) and "__pycache__" not in name)


def _on_read(arguments: tuple[Any, ...], _frame: FrameType) -> None:
    path = arguments[0]
    if isinstance(path, str | bytes | os.PathLike):
        _names.add(os.path.abspath(os.fsdecode(path)))


def _package_of(module: str) -> str:
    return module.partition(".")[0]
