"""The CUDA runtime: memory, streams and graphs of a GPU, given back when nobody uses them any more."""

# Coded to NVIDIA's `cuda.bindings.runtime` (cuda-bindings), whose functions return a status and then their results.

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from typing import Any

from engine.errors import StepError


def runtime() -> Any:
    """Return the bindings. Raises StepError where they are not installed."""
    try:
        return importlib.import_module("cuda.bindings.runtime")
    except ImportError as error:
        raise StepError(
            "Running a TensorRT engine needs cuda-bindings, and it is not installed",
            [str(error)],
            "pip install cuda-bindings, of the major version of CUDA that the driver has",
        ) from error


def checked(answer: Any) -> Any:
    """Return what a call gave besides its status: nothing, a value, or a tuple.

    Raises StepError with CUDA's own words where it failed.
    """
    status, *values = answer if isinstance(answer, tuple) else (answer,)
    if int(status) != 0:
        cuda = runtime()
        words = [_text(cuda.cudaGetErrorName(status)), _text(cuda.cudaGetErrorString(status))]
        raise StepError("CUDA refused", [": ".join(words)], _HINTS.get(words[0], ""))
    return values[0] if len(values) == 1 else tuple(values)


class DeviceMemory:
    """Some bytes of the current GPU's memory."""

    def __init__(self, size: int) -> None:
        """Raises StepError where there is not as much."""
        self.size = size
        self.address = int(checked(runtime().cudaMalloc(max(1, size))))
        _free_with(self, runtime().cudaFree, self.address)

    def write(self, source: int, stream: CudaStream) -> None:
        """Copy `size` bytes from an address of the host's."""
        kind = runtime().cudaMemcpyKind.cudaMemcpyHostToDevice
        checked(runtime().cudaMemcpyAsync(self.address, source, self.size, kind, stream.handle))

    def read(self, target: int, size: int, stream: CudaStream) -> None:
        """Copy the first bytes to an address of the host's."""
        kind = runtime().cudaMemcpyKind.cudaMemcpyDeviceToHost
        checked(runtime().cudaMemcpyAsync(target, self.address, size, kind, stream.handle))


class CudaStream:
    """A stream of the current GPU: what is put on it is done in that order."""

    def __init__(self) -> None:
        """Raises StepError where CUDA gives none, as without a driver."""
        self.handle = int(checked(runtime().cudaStreamCreate()))
        _free_with(self, runtime().cudaStreamDestroy, self.handle)

    def wait(self) -> None:
        """Return when all that is on it is done. Raises StepError where some of that failed."""
        checked(runtime().cudaStreamSynchronize(self.handle))

    def captured(self, work: Callable[[], object]) -> CudaGraph:
        """Return what `work` puts on this stream as a graph, without doing it. Raises StepError where it cannot be."""
        mode = runtime().cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        checked(runtime().cudaStreamBeginCapture(self.handle, mode))
        try:
            work()
        finally:
            graph = checked(runtime().cudaStreamEndCapture(self.handle))
        return CudaGraph(graph)


class CudaGraph:
    """Captured work that is started by one call."""

    def __init__(self, captured: Any) -> None:
        self.handle = checked(runtime().cudaGraphInstantiate(captured, 0))
        checked(runtime().cudaGraphDestroy(captured))
        _free_with(self, runtime().cudaGraphExecDestroy, self.handle)

    def launch(self, stream: CudaStream) -> None:
        """Put it on a stream."""
        checked(runtime().cudaGraphLaunch(self.handle, stream.handle))


def use(index: int) -> None:
    """Make a GPU the current one of this thread. Raises StepError where it cannot be used."""
    checked(runtime().cudaSetDevice(index))


def _free_with(owner: object, free: Callable[[Any], Any], handle: Any) -> None:
    """Give something back with its owner; not at the end of the process, when CUDA may be gone already."""
    weakref.finalize(owner, free, handle).atexit = False


def _text(answer: Any) -> str:
    said = answer[-1]
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


_HINTS = {
    "cudaErrorInsufficientDriver": "install NVIDIA's driver, of at least the version that this CUDA runtime needs",
    "cudaErrorNoDevice": "no GPU is visible; CUDA_VISIBLE_DEVICES may hide it",
    "cudaErrorMemoryAllocation": "narrower profiles or smaller batches need less memory; what else runs on the GPU?",
}
