"""Which of the ways to run models on a GPU are open here, and what each of them lacks."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Mapping

from engine.machine import cuda
from engine.runtimes import registry
from engine.runtimes.runtime import Way

_DRIVER = "an NVIDIA driver that shows a GPU (libcuda.so.1)"


def missing(way: Way, installed: Callable[[str], bool]) -> list[str]:
    """Return what a way lacks to run a model here, nothing where it should; `installed` knows distributions."""
    lacks = [name for name in way.distributions if not installed(name)]
    lacks += [name for name, module in way.modules if not _found(module)]
    lacks += [name for name in way.libraries if not _loads(name)]
    return lacks if cuda.devices() else [_DRIVER, *lacks]


def table(installed: Callable[[str], bool]) -> Mapping[str, list[str]]:
    """Return what each way lacks, by its name."""
    ways = (way for runtime in registry.runtimes().values() for way in runtime.ways)
    return {way.name: missing(way, installed) for way in ways}


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
