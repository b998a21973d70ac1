"""Shared libraries that a program loads by name: those that the system's loader finds, and those that pip installed."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from collections.abc import Sequence

from engine.facts import Known
from engine.system import regular

_PACKAGES = ("tensorrt_libs",)
"""Packages that hold libraries which the system's loader does not find. pip's TensorRT brings `tensorrt_libs`."""
_CACHE = "/etc/ld.so.cache"
"""The list of libraries that the system's loader reads, and that `ldconfig` writes."""
_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", f"/usr/lib/{platform.machine()}-linux-gnu")
"""Folders in which the system's loader looks without a list."""
_SEARCHED = "LD_LIBRARY_PATH"


def load(name: str) -> ctypes.CDLL:
    """Load a library and return it. Raises OSError where it cannot be loaded.

    A library that is loaded later and needs this one by its name gets this one, wherever it was found.
    """
    for place in filter(os.path.exists, _of_pip(name)):
        try:
            return ctypes.CDLL(name)
        except OSError:
            return ctypes.CDLL(place)
    return ctypes.CDLL(name)


def is_here(name: str) -> bool:
    """Say whether this machine has a library, which may itself need other libraries that are loaded before it.

    The library is not loaded, as it may be large.
    """
    return _first(_places(name)) is not None


def is_of_pip(name: str) -> bool:
    """Say whether the file of a library that this machine has is one that pip installed."""
    return _first(_places(name)) in _of_pip(name)


def known(name: str) -> Known:
    """Return whether a library is here, "yes" or "no", with the files that can change the answer."""
    return Known("yes" if is_here(name) else "no", (_CACHE, *_places(name)), (_SEARCHED,))


def version(name: str) -> Known:
    """Return the version that the file of a library has in its name, such as "10.11.0"; "" where it has none.

    apt's `libnvinfer.so.10` is a link to a file with such a name; pip's is a file itself.
    """
    places = _places(name)
    first = _first(places)
    file = "" if first is None else os.path.realpath(first)
    match = re.search(r"\.so\.([0-9]+(?:\.[0-9]+)+)$", file)
    return Known(match[1] if match else "", (_CACHE, *places, *filter(None, [file])), (_SEARCHED,))


def _first(places: Sequence[str]) -> str | None:
    """Return the first of the paths at which there is a file."""
    return next(filter(os.path.exists, places), None)


def _places(name: str) -> tuple[str, ...]:
    """Return the paths at which a library can be, in the order of the system's loader; then those of pip."""
    extra = [os.path.join(folder, name) for folder in os.environ.get(_SEARCHED, "").split(os.pathsep) if folder]
    return (*extra, *_listed(name), *(os.path.join(folder, name) for folder in _FOLDERS), *_of_pip(name))


def _listed(name: str) -> list[str]:
    """Return the paths of a library in the loader's list, whose texts each end with a zero byte."""
    try:
        every = regular.read(_CACHE)
    except OSError:
        return []
    return [os.fsdecode(path) for path in re.findall(rb"(/[^\0]*/%s)\0" % re.escape(name).encode(), every)]


def _of_pip(name: str) -> tuple[str, ...]:
    """Return the paths at which pip puts a library."""
    return tuple(os.path.join(folder, package, name) for folder in sys.path if folder for package in _PACKAGES)
