"""What executes models: a package per runtime; other packages bring theirs by entry points."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.runtimes.backends import Accelerator, Backend
    from engine.runtimes.execution import Execution
    from engine.runtimes.preparation import Lowering, Residual
    from engine.runtimes.rival import Original
    from engine.runtimes.runner import Runner
    from engine.runtimes.runtime import Kernels, Runtime, Unsupported, Way
    from engine.runtimes.served import Served

__all__ = [
    "VERSION", "Accelerator", "Backend", "Execution", "Kernels", "Lowering", "Original", "Residual", "Runner",
    "Runtime", "Served", "Unsupported", "Way",
]  # fmt: skip

VERSION = 1
"""The version of what a runtime of another package says: see docs/stability.md."""
_HOMES = ("runtime", "preparation", "runner", "served", "rival", "backends", "execution")


def __getattr__(name: str) -> object:
    # Imported on first use: whoever imports a module in here shall not depend on all that runtimes of others need.
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"{__name__}.{home}")
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
