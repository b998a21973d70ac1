"""The import of pydantic_core with plain classes in place of its typed dictionaries, for a refusal in less time."""

from __future__ import annotations

import importlib
import sys
import typing
from typing import Any


class _Plain(dict[str, Any]):
    """The base class of a typed dictionary that only a type checker reads."""

    def __init_subclass__(cls, *, total: bool = True) -> None:
        """Take the argument `total` of a typed dictionary, which says nothing at run time."""


def import_pydantic_core() -> None:
    """Import pydantic_core, which describes its schemas in about 90 typed dictionaries.

    Python turns each annotation of a typed dictionary into an object. That takes 7 % of the instructions of a refusal,
    and neither pydantic_core nor pydantic reads these objects. `recipe check` alone does this: a program that goes on,
    as a build does, keeps the typed dictionaries.
    """
    if "pydantic_core" in sys.modules:
        return
    extensions = importlib.import_module("typing_extensions")  # first: it may take `TypedDict` over from `typing`
    source: Any = typing if sys.version_info >= (3, 12) else extensions
    real = source.TypedDict
    source.TypedDict = _Plain
    try:
        import pydantic_core  # noqa: F401  the import is all that is meant
    finally:
        source.TypedDict = real
