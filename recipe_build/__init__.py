"""`recipe` in Python, and the start of the program.

A user may have an `engine.py` or a folder `engine/` of their own: this package imports the `engine` that lies beside
it, whatever stands first on the import path.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from engine import BuildFailedError, UserError, build, check, diff, history, load, lock, plan, show, why
    from recipe_build import runtimes as runtimes
    from recipe_build import step as step
    from recipe_build import tasks as tasks
    from recipe_build import testing as testing

    __version__: str

__all__ = ["BuildFailedError", "UserError", "build", "check", "diff", "history", "load", "lock", "plan", "show", "why"]
_MODULES = ("runtimes", "step", "tasks", "testing")
"""The modules for packages with steps, runtimes and tasks of their own."""
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder that holds this package and `engine`."""


def _import_engine() -> None:
    """Import `engine` from the folder of this package. Raises ImportError if another `engine` is imported already."""
    sys.path.insert(0, _HOME)
    try:
        import engine
    finally:
        sys.path.remove(_HOME)
    place = str(next(iter(getattr(engine, "__path__", ())), engine.__file__))
    if os.path.realpath(place) != os.path.realpath(os.path.join(_HOME, "engine")):
        raise ImportError(f"another `engine` is imported already, {place}: import recipe_build before it, or rename it")


if not TYPE_CHECKING:  # a type checker knows the names from above

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "__version__":
            return import_module("engine.text.distribution").version()
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name in __all__:
            return getattr(import_module("engine"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])


def main() -> NoReturn:
    """Run the program `recipe`."""
    from engine.cli import main as run

    run()


_import_engine()
