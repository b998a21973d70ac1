"""Modules of Python that are loaded when they are first used: their import takes about a twelfth of a refusal."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def put_off() -> None:
    """Let an import of these modules load nothing yet, unless a module is loaded already.

    pydantic imports all of them. Of each, it takes or calls at most the functions that are given here.
    """
    _put_off(
        "importlib.metadata",
        {"entry_points": lambda **selected: _loaded("importlib.metadata").entry_points(**selected)},
    )
    _put_off("secrets", {})
    _put_off("platform", {"system": lambda: os.uname().sysname})  # the module uuid calls it when it is imported


class _Late(ModuleType):
    """Stands for a module until something of it is read that is not in `ready`."""

    def __init__(self, name: str, ready: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(name)
        self.__dict__.update(ready)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks whether the module is a package
            raise AttributeError(name)
        return getattr(_loaded(self.__name__), name)


def _put_off(name: str, ready: Mapping[str, Callable[..., Any]]) -> None:
    if name not in sys.modules:
        late = sys.modules[name] = _Late(name, ready)
        parent, _, last = name.rpartition(".")
        if parent:  # an import sets both
            setattr(sys.modules[parent], last, late)


def _loaded(name: str) -> ModuleType:
    if isinstance(sys.modules.get(name), _Late):
        del sys.modules[name]
    return importlib.import_module(name)
