"""Ways to run models on a GPU, for `recipe doctor`: what each way lacks on this machine."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping

from engine.machine import cuda, drivers, local_gpus, shared_libraries
from engine.runtimes import registry
from engine.runtimes.support import Way

_DRIVER = "an NVIDIA driver that shows a GPU (libcuda.so.1)"


def missing(way: Way, installed: Callable[[str], bool]) -> list[str]:
    """Return the list of things that a way to run models lacks on this machine.

    The function `installed` tells whether a distribution is installed.
    """
    absent = [name for name in way.distributions if not installed(name)]
    absent += _modules_missing(way)
    absent += [name for name in way.libraries if not shared_libraries.is_here(name)]
    absent += [old for name in way.distributions if installed(name) and (old := drivers.lacking(name))]
    return absent if cuda.devices() else [local_gpus.hidden() or _DRIVER, *absent]


def table(installed: Callable[[str], bool]) -> Mapping[str, list[str]]:
    """Return, for the name of each way to run models on a GPU, the things that the way lacks on this machine."""
    ways = (way for runtime in registry.runtimes().values() for way in runtime.ways)
    return {way.name: missing(way, installed) for way in ways}


def modules_missing(distribution: str) -> list[str]:
    """Return the packages that the GPU runtimes on `distribution` need beside it, and that Python does not find."""
    ways = (
        way for runtime in registry.runtimes().values() for way in runtime.ways if distribution in way.distributions
    )
    return sorted({name for way in ways for name in _modules_missing(way)})


def _modules_missing(way: Way) -> list[str]:
    return [name for name, module in way.modules if not _can_import(module)]


def _can_import(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around the module is not installed
        return False
