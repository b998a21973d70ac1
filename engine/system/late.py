"""Late names: names that a package imports when they are first used, so that its import brings no other module."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module


def names(package: str, **homes: str) -> Callable[[str], object]:
    """Return a function `__getattr__` for a package: `homes` maps a module of the package to names that it defines.

    The package imports the same names under `if TYPE_CHECKING:`. There the key of a step reads which module a
    `from package import name` brings.
    """
    places = {name: f"{package}.{module}" for module, listed in homes.items() for name in listed.split()}

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return get
