"""The GPU that CUDA gives to this process, and whether an engine is to be built there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from engine import cuda, gpus
from engine.errors import StepError


def wanted(names: Sequence[str]) -> cuda.Device:
    """Return the GPU that TensorRT builds on: the first that CUDA shows, which must be one of those named.

    Raises StepError where there is none, or another one.
    """
    found = cuda.devices()
    if not found:
        raise StepError(
            "CUDA shows no GPU to this process",
            ["a native TensorRT engine is built on the GPU that it is for"],
            "does `nvidia-smi` work? in a container, was it started with --gpus all?",
        )
    if any(gpus.matches(found[0].name, name) for name in names):
        return found[0]
    fitting = [str(number) for number, device in enumerate(found) if any(gpus.matches(device.name, n) for n in names)]
    raise StepError(
        f"the engine would be built on another GPU than {' or '.join(names)}",
        [f"CUDA's device {number} is {device.name} (sm_{device.sm})" for number, device in enumerate(found)],
        f"let CUDA show that one first: CUDA_VISIBLE_DEVICES={fitting[0]}" if fitting else "",
    )


def driver_version() -> str | None:
    """Return the version of the GPU's driver, as in "580.65.06"; None where `nvidia-smi` does not tell."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return next((line.strip() for line in told.splitlines() if line.strip()), None)
