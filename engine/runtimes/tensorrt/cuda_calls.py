"""CUDA calls: functions of the CUDA runtime, whose errors become errors of a step."""

# Source: NVIDIA's `cuda.bindings.runtime` (cuda-bindings). Its functions return a tuple: a status, then the results.

from __future__ import annotations

import importlib
from typing import Any

from engine.errors import StepError


def runtime() -> Any:
    """Return the module `cuda.bindings.runtime`. Raises StepError where the package cuda-bindings is not installed."""
    try:
        return importlib.import_module("cuda.bindings.runtime")
    except ImportError as error:
        raise StepError(
            "Running a TensorRT engine needs cuda-bindings, and it is not installed",
            [str(error)],
            "pip install cuda-bindings, of the major version of CUDA that the driver has",
        ) from error


def checked(answer: Any) -> Any:
    """Return the results of a call of the CUDA runtime, without its status: one value, or a tuple of none or several.

    Raises StepError with CUDA's error message where the call failed.
    """
    status, *values = answer if isinstance(answer, tuple) else (answer,)
    if int(status) != 0:
        cuda = runtime()
        words = [_text(cuda.cudaGetErrorName(status)), _text(cuda.cudaGetErrorString(status))]
        raise StepError("CUDA refused", [": ".join(words)], _HINTS.get(words[0], ""))
    return values[0] if len(values) == 1 else tuple(values)


def use(index: int) -> None:
    """Make a GPU the current GPU of this thread. Raises StepError where CUDA cannot use the GPU."""
    checked(runtime().cudaSetDevice(index))


def _text(answer: Any) -> str:
    message = answer[-1]
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


_HINTS = {
    "cudaErrorInsufficientDriver": "install NVIDIA's driver, of at least the version that this CUDA runtime needs",
    "cudaErrorNoDevice": "no GPU is visible; CUDA_VISIBLE_DEVICES may hide it",
    "cudaErrorMemoryAllocation": "narrower profiles or smaller batches need less memory; what else runs on the GPU?",
}
