"""Make for inference artifacts: `build`, `check`, `lock`, `plan`, `why` and `show` as functions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.api import build, check, lock, plan, show, why

__all__ = ["build", "check", "lock", "plan", "show", "why"]


def __getattr__(name: str) -> object:
    # Imported on first use: the no-op build must not pay for them.
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("engine.api"), name)
    raise AttributeError(f"module 'engine' has no attribute {name!r}")
