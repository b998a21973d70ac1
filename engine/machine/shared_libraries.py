"""Shared libraries that a program loads by name: those that the system's loader finds, and those that pip installed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

from engine.known import Known

_PACKAGES = ("tensorrt_libs",)
"""Packages that hold libraries which the system's loader does not find. pip's TensorRT brings `tensorrt_libs`."""
_CACHE = "/etc/ld.so.cache"
"""The list of libraries that the system's loader reads, and that `ldconfig` writes."""
_SEARCHED = "LD_LIBRARY_PATH"


def load(name: str) -> ctypes.CDLL | None:
    """Load a library and return it; None where it cannot be loaded.

    A library that is loaded later and needs this one by its name gets this one, wherever it was found.
    """
    for place in (name, *filter(os.path.exists, _of_pip(name))):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(place)
    return None


def is_here(name: str) -> bool:
    """Say whether this machine has a library, which may itself need other libraries that are loaded before it."""
    if any(map(os.path.exists, _of_pip(name))):
        return True
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return not str(error).startswith(f"{name}: ")  # else it is another library that is absent
    return True


def known(name: str) -> Known:
    """Return whether a library is here, "yes" or "no", with the files that can change the answer."""
    folders = filter(None, os.environ.get(_SEARCHED, "").split(os.pathsep))
    places = (os.path.join(folder, name) for folder in folders)
    return Known("yes" if is_here(name) else "no", (_CACHE, *places, *_of_pip(name)), (_SEARCHED,))


def _of_pip(name: str) -> tuple[str, ...]:
    """Return the paths at which pip puts a library."""
    return tuple(os.path.join(folder, package, name) for folder in sys.path if folder for package in _PACKAGES)
