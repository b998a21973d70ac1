"""The CUDA runtime: its calls, and memory, streams and graphs of a GPU, each freed with the object that owns it."""

# Source: NVIDIA's `cuda.bindings.runtime` (cuda-bindings). Its functions return a tuple: a status, then the results.

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from typing import Any

from engine.errors import StepError

_HINTS = {
    "cudaErrorInsufficientDriver": "install NVIDIA's driver, of at least the version that this CUDA runtime needs",
    "cudaErrorNoDevice": "no GPU is visible; CUDA_VISIBLE_DEVICES may hide it",
    "cudaErrorMemoryAllocation": "narrower profiles or smaller batches need less memory; what else runs on the GPU?",
}


class DeviceMemory:
    """A block of the current GPU's memory."""

    def __init__(self, size: int) -> None:
        """Allocate `size` bytes. Raises StepError where the GPU has less free memory than `size` bytes."""
        self.size = size
        self.address = int(checked(runtime().cudaMalloc(max(1, size))))
        _free_with(self, runtime().cudaFree, self.address)

    def write(self, source: int, stream: CudaStream) -> None:
        """Fill this block of GPU memory with bytes from an address in the host's memory."""
        kind = runtime().cudaMemcpyKind.cudaMemcpyHostToDevice
        checked(runtime().cudaMemcpyAsync(self.address, source, self.size, kind, stream.handle))

    def read(self, target: int, size: int, stream: CudaStream) -> None:
        """Copy the first `size` bytes of this block of GPU memory to an address in the host's memory."""
        kind = runtime().cudaMemcpyKind.cudaMemcpyDeviceToHost
        checked(runtime().cudaMemcpyAsync(target, self.address, size, kind, stream.handle))


class PinnedMemory:
    """A block of the host's memory that is page-locked, so that the GPU copies from it without a detour."""

    def __init__(self, size: int) -> None:
        """Allocate `size` bytes. Raises StepError where the system locks no more memory."""
        self.size = size
        self.address = int(checked(runtime().cudaMallocHost(max(1, size))))
        _free_with(self, runtime().cudaFreeHost, self.address)


class CudaEvent:
    """A point in the work of a stream, at which CUDA takes the GPU's time."""

    def __init__(self) -> None:
        self.handle = checked(runtime().cudaEventCreate())
        _free_with(self, runtime().cudaEventDestroy, self.handle)

    def record(self, stream: CudaStream) -> None:
        """Put the event behind the work that is enqueued on a stream."""
        checked(runtime().cudaEventRecord(self.handle, stream.handle))

    def reached(self) -> bool:
        """Return whether the GPU has done all work before the event. Raises StepError where any of the work failed."""
        answer = runtime().cudaEventQuery(self.handle)
        status = answer[0] if isinstance(answer, tuple) else answer
        if status.name == "cudaErrorNotReady":
            return False
        checked(answer)
        return True

    def since(self, before: CudaEvent) -> float:
        """Return the milliseconds between an earlier event and this one; the GPU must have reached both."""
        return float(checked(runtime().cudaEventElapsedTime(before.handle, self.handle)))


class CudaStream:
    """A stream of the current GPU: it runs work in the order in which the work was enqueued."""

    def __init__(self) -> None:
        """Create a stream. Raises StepError where CUDA cannot create a stream, for example without a driver."""
        self.handle = int(checked(runtime().cudaStreamCreate()))
        _free_with(self, runtime().cudaStreamDestroy, self.handle)

    def wait(self) -> None:
        """Wait until the GPU has done all work on the CUDA stream.

        Raises StepError where any work on the stream failed.
        """
        checked(runtime().cudaStreamSynchronize(self.handle))

    def captured(self, work: Callable[[], object]) -> CudaGraph:
        """Return the calls that `work` enqueues on this stream as a CUDA graph, without running them.

        Raises StepError where CUDA cannot capture the calls in a graph.
        """
        mode = runtime().cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        checked(runtime().cudaStreamBeginCapture(self.handle, mode))
        try:
            work()
        finally:
            graph = checked(runtime().cudaStreamEndCapture(self.handle))
        return CudaGraph(graph)


class CudaGraph:
    """A CUDA graph: a recorded series of GPU operations that one call starts."""

    def __init__(self, captured: Any) -> None:
        self.handle = checked(runtime().cudaGraphInstantiate(captured, 0))
        checked(runtime().cudaGraphDestroy(captured))
        _free_with(self, runtime().cudaGraphExecDestroy, self.handle)

    def launch(self, stream: CudaStream) -> None:
        """Enqueue the CUDA graph on a stream."""
        checked(runtime().cudaGraphLaunch(self.handle, stream.handle))


def _free_with(owner: object, free: Callable[[Any], Any], handle: Any) -> None:
    """Free a CUDA handle (memory, stream or graph) when the Python object that owns the handle is deleted.

    CUDA handles that are alive at the end of the process are not freed, as CUDA may be shut down already.
    """
    weakref.finalize(owner, free, handle).atexit = False


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
