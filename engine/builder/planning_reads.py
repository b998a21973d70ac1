"""The files that were read while recipes were planned: a change of such a file may change the plan itself."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from functools import cache

_EVENTS = ("open", "os.listdir", "os.scandir")
"""The audit events of Python for a file or folder that is read."""
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


@cache
def _listen() -> None:
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[object, ...]) -> None:
    if _depth and event in _EVENTS:
        path = arguments[0]
        if isinstance(path, str | bytes | os.PathLike):
            _names.add(os.fsdecode(path))
