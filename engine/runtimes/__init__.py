"""Runtimes execute models. A runtime is a package of engine/runtimes, or an entry point of a distribution names it."""

from typing import TYPE_CHECKING

from engine.system import late

if TYPE_CHECKING:
    from engine.runtimes.backends import Accelerator, Backend
    from engine.runtimes.knobs import Knob
    from engine.runtimes.preparation import Lowering, Residual
    from engine.runtimes.runner import Original, RivalModel, Runner
    from engine.runtimes.runtime import Runtime
    from engine.runtimes.served import Served
    from engine.runtimes.support import Kernels, Unsupported, Way

__all__ = [
    "VERSION", "Accelerator", "Backend", "Kernels", "Knob", "Lowering", "Original", "Residual", "RivalModel",
    "Runner", "Runtime", "Served", "Unsupported", "Way",
]  # fmt: skip

VERSION = 1
"""The version of the interface for runtimes of other packages: see docs/stability.md."""

__getattr__ = late.names(
    __name__,
    backends="Accelerator Backend",
    knobs="Knob",
    preparation="Lowering Residual",
    runner="Original RivalModel Runner",
    runtime="Runtime",
    served="Served",
    support="Kernels Unsupported Way",
)
