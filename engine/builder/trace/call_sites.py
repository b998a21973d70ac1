"""Call sites: which code caused a read, and where code lies."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import FrameType

from engine.builder import audit

_SITES = ("site-packages", "dist-packages")
_CACHED = f"{os.sep}__pycache__{os.sep}"
_BUILDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
"""The folder of the code that runs jobs, and is no step's own code."""
_PYTHON = os.path.dirname(os.__file__)
"""The folder of the standard library."""
OURS = "engine"
"""The Python package of this program."""
ENGINE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "")
"""The folder of this program."""
_AUDIT = audit.__file__
_WITHOUT_LINKS = os.path.realpath.__name__


@dataclass(frozen=True)
class ReadSite:
    """The code that caused a read."""

    by: str = ""
    """The module that did the read, not counting the standard library."""
    lines: tuple[str, ...] = ()
    """The lines of code that led to the read, as `file:line`, the nearest first."""

    def within(self, roots: tuple[str, ...]) -> str:
        """Return the nearest line of the step whose code lies below the paths in `roots`; empty without one."""
        return next((line for line in self.lines if line.startswith(roots)), "")


def site_of(frames: Sequence[FrameType]) -> ReadSite:
    """Return the site of a read from the frames that `readers` yields, or from the nearest of them alone."""
    return ReadSite(_module(frames[0]) if frames else "", tuple(map(_line, frames)))


def readers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames of a stack that belong neither to the standard library nor to the code that runs jobs."""
    while frame is not None:
        if not is_standard(file := frame.f_code.co_filename) and not file.startswith(_BUILDER):
            yield frame
        frame = frame.f_back


def package_of_frame(frame: FrameType) -> str:
    """Return the top-level Python package of the module whose code a frame runs."""
    return _module(frame).partition(".")[0]


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


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
    return file.startswith("<") or (file.startswith(_PYTHON) and not any(site in file for site in _SITES))


def package_of_class(name: str) -> str:
    """Return the top-level Python package of a class that is written as `module:Class`."""
    return name.partition(":")[0].partition(".")[0]


def roots_of(package: str) -> tuple[str, ...]:
    """Return the folders, or the file, of a top-level Python package."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return ()
    if spec.submodule_search_locations is not None:
        return tuple(os.path.join(each, "") for each in spec.submodule_search_locations)
    return (spec.origin,) if spec.origin else ()


@cache
def without_links(path: str) -> str:
    """Return a path with its links followed; a folder keeps its slash at the end, and "" stays."""
    real = os.path.realpath(path) if path else ""
    return os.path.join(real, "") if path.endswith(os.sep) else real


def source_of(file: str) -> str:
    """Return the absolute path of a file; for a compiled file in `__pycache__`, that of its source."""
    file = os.path.abspath(file)
    if not file.endswith(".pyc") or _CACHED not in file:
        return file
    folder, _, name = file.rpartition(_CACHED)
    return os.path.join(folder, f"{name.split('.', 1)[0]}.py")
