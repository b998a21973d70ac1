"""Compilation: a PyTorch module compiled by torch.compile, once for each shape of its inputs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError, causes
from engine.kit.onnx import foreign_functions
from engine.text import reasons

if TYPE_CHECKING:
    import torch

CALLS = 3
"""The calls of a shape before its measurement: the first compiles, and the second captures a CUDA graph."""
_SHAPES = 4096
"""The largest number of shapes for which PyTorch compiles a module; by its default, the ninth runs in eager mode."""
_NO_COMPILER = ("InvalidCxxCompiler", "CppCompileError")
"""The names of PyTorch's errors for a missing C++ compiler, and for a compiler that lacks headers such as Python's."""
_LINES = 4
"""The greatest number of lines of the compiler's output that an error quotes."""


def compiled(module: torch.nn.Module, mode: str, scratch: Path | None) -> torch.nn.Module:
    """Return the module compiled in a mode of torch.compile; the compilation takes place in the first call of a shape.

    The compilers run in this process and write to the folder `scratch`, so that nothing of them outlives a job.
    """
    import torch

    if scratch is not None:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "torchinductor")
        os.environ["TRITON_CACHE_DIR"] = str(scratch / "triton")
    foreign_functions.compile_in_this_process(shutil.which("g++") or "g++", _SHAPES)
    return torch.compile(module, mode=mode, dynamic=False)


def refusal(error: Exception, name: str) -> StepError:
    """Return the error for the rival called `name`, of which a call before the measurement raised `error`."""
    cause = next((cause for cause in causes(error) if type(cause).__name__ in _NO_COMPILER), None)
    if cause is None:
        return StepError(f"{name} cannot run", reasons.facts(error), "take it out of bench.against")
    output = getattr(cause, "output", "").strip().splitlines()[:_LINES]
    return StepError(
        f"{name} cannot be compiled: g++ is not installed, or it failed",
        output or reasons.facts(error),
        "install g++ and the headers of Python (g++, python3-dev), or take it out of bench.against",
    )
