"""Modules of Python that are loaded when they are first used: their import takes about a tenth of a refusal."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def put_off() -> None:
    """Let an import of these modules load nothing yet, unless a module is loaded already.

    This program, argparse, inspect, pathlib and pydantic import them. Of each, they take or call at most the functions
    that are given in `_READY`, as long as nothing fails.
    """
    for name, ready in _READY.items():
        if name not in sys.modules:
            late = sys.modules[name] = _Late(name, ready)
            parent, _, last = name.rpartition(".")
            if parent:  # an import sets both
                setattr(importlib.import_module(parent), last, late)


class _Late(ModuleType):
    """Stands for a module until something of it is read that is not in `ready`."""

    def __init__(self, name: str, ready: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(name)
        self.__dict__.update(ready)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks whether the module is a package
            raise AttributeError(name)
        return getattr(_loaded(self.__name__), name)


def _loaded(name: str) -> ModuleType:
    if isinstance(sys.modules.get(name), _Late):
        del sys.modules[name]
    return importlib.import_module(name)


_READY: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    # pydantic takes it and does not call it.
    "importlib.metadata": {"entry_points": lambda **selected: _loaded("importlib.metadata").entry_points(**selected)},
    # argparse calls both with its words in English, the language of this program.
    "gettext": {"gettext": lambda text: text, "ngettext": lambda one, many, count: one if count == 1 else many},
    # The module uuid calls it when it is imported.
    "platform": {"system": lambda: os.uname().sysname},
    # pathlib takes it and does not call it.
    "urllib.parse": {"quote_from_bytes": lambda *bytes_: _loaded("urllib.parse").quote_from_bytes(*bytes_)},
    "json": {},
    "linecache": {},
    "secrets": {},
    "tokenize": {},
    "traceback": {},
}
"""The modules, and of each the functions that others take or call before anything else is asked of the module."""
