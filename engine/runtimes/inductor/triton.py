"""How a compiled model is served: by Triton's PyTorch backend, as `platform: torch_aoti`."""

# Source: README of triton-inference-server/pytorch_backend, "AOT Inductor Support (Beta)", at the commit 266fd38: the
# backend joins no requests for such a model. No server of this project has loaded one.

from __future__ import annotations

from pathlib import Path

from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.inductor import passport as passports
from engine.runtimes.served import Served


def served(directory: Path, execution: Execution, scratch: Path) -> Served:  # noqa: ARG001 - nothing is tried
    """Return how Triton serves the compiled model in a directory."""
    passport = passports.load(directory)
    inputs, outputs = passport.tensors()
    largest = {axis: sizes.max for axis, sizes in passport.axes.items() if sizes.max is not None}
    return Served(
        Backend.PYTORCH,
        inputs,
        outputs,
        passports.FILES,
        largest=largest,
        joined=False,
        on_gpu=passport.machine.gpu is not None,
    )
