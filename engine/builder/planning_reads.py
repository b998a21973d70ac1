"""The files that were read while recipes were planned: a change of such a file may change the plan itself."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.machinery import all_suffixes
from pathlib import Path

_EVENTS = ("open", "os.listdir", "os.scandir")
"""The audit events of Python for a file or folder that is read."""
_FOLDERS_OF_SYSTEM = ("/proc", "/sys", "/dev")
"""Folders whose files have no time stamps that mean anything."""
_MARK_OF_STORE = f"{os.sep}cache{os.sep}format"
"""How the name of a file ends that the search for the root of a project reads; a snapshot compares the root itself."""
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_names: set[str] = set()
_depth = 0


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Note the files that Python opens and the folders that Python lists inside the `with` block."""
    global _depth  # noqa: PLW0603 - an audit hook cannot be removed, so it is told when to listen
    _listen()
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def names() -> frozenset[str]:
    """Return the absolute paths of all files and folders that planning has read in this process.

    A path is given as the reader wrote it and with its symbolic links followed.
    """
    absolute = {os.path.abspath(name) for name in _names}
    return frozenset(absolute | {os.path.realpath(name) for name in absolute})


def foreign(store: Path) -> frozenset[str]:
    """Return the names that planning read and that no other list of a build names.

    For example, a step of another package may read a file of settings when it takes its options from the recipe. The
    result leaves out the store at `store` and the folders of Python, of this program and of the system. It also leaves
    out the files of Python modules, because the rows for code name them.
    """
    places = (str(store), sys.prefix, sys.base_prefix, _OURS)
    known = (*_FOLDERS_OF_SYSTEM, *places, *map(os.path.realpath, places))
    others = (name for name in names() if not name.endswith(_MARK_OF_STORE))
    return frozenset(name for name in others if not _is_module(name) and not _is_in(name, known))


def _is_in(name: str, folders: Iterable[str]) -> bool:
    return any(name == folder or name.startswith(f"{folder}{os.sep}") for folder in folders)


def _is_module(name: str) -> bool:
    """Say whether a name is the file of a Python module, or a folder in which Python looks for modules."""
    return name.endswith(tuple(all_suffixes())) or "__pycache__" in name or name in sys.path_importer_cache


@cache
def _listen() -> None:
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[object, ...]) -> None:
    if _depth and event in _EVENTS:
        path = arguments[0]
        if isinstance(path, str | bytes | os.PathLike):
            _names.add(os.fsdecode(path))
