"""The import of libraries that read recipes, without the parts of their classes that no recipe needs."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LIBRARIES = ("pydantic.fields", "pydantic.json_schema", "pydantic.main", "pydantic.type_adapter", "yaml")
_compile, _dataclass = re.compile, dataclasses.dataclass


def import_libraries() -> None:
    """Import pydantic and PyYAML with lighter classes: that takes a tenth of the time of a refusal less.

    Python compiles each method of a dataclass, each annotation of a typed dictionary and each regular expression when
    it imports them. Reading a recipe needs only the first of the methods, `__init__`, no annotation of the typed
    dictionaries, and few of the expressions. `recipe check` alone does this: a program that goes on, as a build does,
    keeps the whole classes.
    """
    if "pydantic" in sys.modules:
        return
    with _lighter():
        for name in _LIBRARIES:
            importlib.import_module(name)


@contextmanager
def _lighter() -> Iterator[None]:
    """Make typed dictionaries, dataclasses and regular expressions lighter until the end of the `with` statement."""
    extensions = importlib.import_module("typing_extensions")  # first: it may take `TypedDict` over from `typing`
    places: tuple[tuple[Any, str, Any], ...] = (
        (extensions, "TypedDict", _Plain),
        (typing, "TypedDict", _Plain),
        (dataclasses, "dataclass", _with_init_alone),
        (re, "compile", _LatePattern),
    )
    before = [getattr(module, name) for module, name, _ in places]
    for module, name, lighter in places:
        setattr(module, name, lighter)
    try:
        yield
    finally:
        for (module, name, _), whole in zip(places, before, strict=True):
            setattr(module, name, whole)


class _Plain(dict[str, Any]):
    """The base class of a typed dictionary that only a type checker reads."""

    def __init_subclass__(cls, **options: bool) -> None:
        """Take the options of a typed dictionary, such as `total`, which say nothing at run time."""


def _with_init_alone(cls: type | None = None, /, **options: Any) -> type | Callable[[type], type]:
    """Return a dataclass, or its decorator, without the methods that compare, print and protect its instances."""
    unused = dict.fromkeys(("repr", "eq", "order", "frozen", "slots", "match_args"), False)
    decorator = _dataclass(**{**options, **unused})
    return decorator if cls is None else decorator(cls)


class _LatePattern:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, pattern: Any, flags: int = 0) -> None:
        self._arguments = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = _compile(*self._arguments)
        self.__dict__.update({each: getattr(compiled, each) for each in dir(compiled) if not each.startswith("_")})
        return getattr(compiled, name)
