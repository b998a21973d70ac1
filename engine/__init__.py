"""A build tool for inference artifacts. The commands are functions, such as `build`, `check`, `show` and `why`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.api import BuildFailedError, UserError, build, check, diff, history, load, lock, plan, show, why

__all__ = ["BuildFailedError", "UserError", "build", "check", "diff", "history", "load", "lock", "plan", "show", "why"]


def __getattr__(name: str) -> object:
    # Imported on first use: a no-op build does not need these functions, and their imports take time.
    if name in __all__:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.api"), name)
    raise AttributeError(f"module 'engine' has no attribute {name!r}")
