"""Places: which code caused a read, and where a file belongs: the standard library, a package, or neither."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from types import FrameType

from engine.builder import audit
from engine.builder.trace import distributions
from engine.plugins import METADATA

_SITES = ("site-packages", "dist-packages")
_CACHED = f"{os.sep}__pycache__{os.sep}"
_BUILDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
"""The folder of the code that runs jobs, and is no step's own code."""
PYTHON = os.path.dirname(os.__file__)
"""The folder of the standard library."""
ENGINE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "")
"""The folder of this program."""
_AUDIT = audit.__file__
_WITHOUT_LINKS = os.path.realpath.__name__
_INTERPRETER = os.path.realpath(sys.executable)
_NAME_OF_LIBRARY = f"{os.sep}libpython3."


_MOST_LINES = 20
"""The greatest number of lines of a stack that are kept for a read that is part of a module's import."""


@dataclass(frozen=True)
class ReadSite:
    """The code that caused a read."""

    at: str
    """The nearest line of the step's own code, as `file:line`; empty where no own code was running."""
    by: str
    """The module that did the read, not counting the standard library."""
    owner: str = ""
    """The module that was being imported, if the read was part of its import; empty otherwise."""
    lines: tuple[str, ...] = ()
    """The nearest lines of code, as `file:line`, for a read that was part of a module's import."""

    def within(self, roots: tuple[str, ...]) -> ReadSite:
        """Return the site as a step sees it whose code lies below the paths in `roots`."""
        return ReadSite(next((line for line in self.lines if line.startswith(roots)), ""), self.by)


def site_of(frame: FrameType | None, roots: tuple[str, ...]) -> ReadSite:
    """Return the site of a read in a stack of frames; the code of the step lies below the paths in `roots`."""
    at = by = owner = ""
    lines: list[str] = []
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if not (is_standard(file) or file.startswith(_BUILDER)):
            if not at and file.startswith(roots):
                at = f"{file}:{frame.f_lineno}"
            by = by or str(frame.f_globals.get("__name__", ""))
            if len(lines) < _MOST_LINES:
                lines.append(f"{file}:{frame.f_lineno}")
            if not owner and code.co_name == "<module>":
                owner = str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    return ReadSite(at, by, owner, tuple(lines) if owner else ())


def asks(frame: FrameType | None, roots: tuple[str, ...]) -> bool:
    """Say whether code below the paths in `roots` asks about a path, by itself or through the standard library.

    A path without its links is no answer: Python looks at each folder of the path to compute it.
    """
    while frame is not None and (is_standard(frame.f_code.co_filename) or frame.f_code.co_filename == _AUDIT):
        if frame.f_code.co_name == _WITHOUT_LINKS:
            return False
        frame = frame.f_back
    return frame is not None and (file := frame.f_code.co_filename).startswith(roots) and not file.startswith(_BUILDER)


def is_standard(file: str) -> bool:
    """Say whether a file is a part of the standard library or of the interpreter."""
    return file.startswith("<") or (file.startswith(PYTHON) and not any(site in file for site in _SITES))


@cache
def without_links(path: str) -> str:
    """Return a path with its links followed; a folder keeps its slash at the end, and "" stays."""
    real = os.path.realpath(path) if path else ""
    return os.path.join(real, "") if path.endswith(os.sep) else real


def source_of(file: str) -> str:
    """Return the source file of a compiled file in `__pycache__`; any other path as it is."""
    if not file.endswith(".pyc") or _CACHED not in file:
        return file
    folder, _, name = file.rpartition(_CACHED)
    return os.path.join(folder, f"{name.split('.', 1)[0]}.py")


def package_of(file: str) -> str | None:
    """Return the folder or file in site-packages that a path belongs to; None for a path outside site-packages.

    A path of the standard library belongs to the folder of the standard library. A folder without `__init__.py`, such
    as `google`, may hold packages of several distributions; the result is then one level deeper. A folder of the import
    path belongs to itself, and so do the lists of entry points in it, which programs read for all distributions. A file
    that no distribution has installed belongs to no package.
    """
    if file in import_path():
        return file
    for site in _sites():
        if file.startswith(site):
            first, *others = file[len(site) :].split(os.sep, 2)
            if first.endswith(METADATA):
                return site[:-1] if others == ["entry_points.txt"] else site + first
            shared = others and not _is_package(site + first)
            package = site + (os.path.join(first, others[0]) if shared else first)
            return package if distributions.owner(package) is not None else None
    return PYTHON if is_standard(file) or file == _INTERPRETER or _NAME_OF_LIBRARY in file else None


@cache
def _is_package(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "__init__.py"))


def import_path() -> tuple[str, ...]:
    """Return the entries of Python's import path as absolute paths without `..`, as a trace names them."""
    return _absolute(tuple(sys.path))


@cache
def _absolute(entries: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(os.path.abspath, entries))


def _sites() -> tuple[str, ...]:
    return _sites_in(import_path())


@cache
def _sites_in(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of the import path in which distributions are installed."""
    return tuple(os.path.join(entry, "") for entry in entries if _has_distributions(entry))


def _has_distributions(folder: str) -> bool:
    try:
        return any(name.endswith(METADATA) for name in os.listdir(folder or os.curdir))
    except OSError:
        return False
