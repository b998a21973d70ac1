"""The module importlib.metadata, loaded when it is first used: its import takes about a twentieth of a refusal."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_NAME = "importlib.metadata"


class _Late(ModuleType):
    """Stands for importlib.metadata until something of it is called, or read that is not `entry_points`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks whether the module is a package
            raise AttributeError(name)
        return getattr(_loaded(), name)

    def entry_points(self, **selected: Any) -> Any:
        """Return the entry points. pydantic takes this function when it is imported, and never calls it here."""
        return _loaded().entry_points(**selected)


def put_off() -> None:
    """Let an import of importlib.metadata load nothing yet, unless the module is loaded already."""
    if _NAME not in sys.modules:
        sys.modules[_NAME] = importlib.metadata = _Late(_NAME)  # an import sets both


def _loaded() -> ModuleType:
    if isinstance(sys.modules.get(_NAME), _Late):
        del sys.modules[_NAME]
    return importlib.import_module(_NAME)
