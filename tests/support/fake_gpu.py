"""A fake CUDA runtime and the fake half of TensorRT that runs engines: no GPU, host memory behind every address.

What they refuse, they refuse as the real ones are documented to. They prove order and bookkeeping, and no number.
"""

# ruff: noqa: N802, N815 - these are CUDA's own names

from __future__ import annotations

import ctypes
import types
from enum import IntEnum

import numpy as np


class Status(IntEnum):
    cudaSuccess = 0
    cudaErrorMemoryAllocation = 2
    cudaErrorNotReady = 600
    cudaErrorStreamCaptureUnsupported = 900


class Runtime:
    """Stands for `cuda.bindings.runtime`; `diary` says what was asked of it."""

    cudaMemcpyKind = types.SimpleNamespace(cudaMemcpyHostToDevice=1, cudaMemcpyDeviceToHost=2)
    cudaStreamCaptureMode = types.SimpleNamespace(cudaStreamCaptureModeThreadLocal=1)

    def __init__(self, *, memory=1 << 30):
        self.left = memory
        self.blocks = {}
        self.diary = []
        self.capturing = None
        self.pinned = {}
        self.events = self.streams = 0
        self.times = {}
        self.unready = {}

    def cudaSetDevice(self, index):
        self.diary.append(f"device {index}")
        return (Status.cudaSuccess,)

    def cudaMalloc(self, size):
        if size > self.left:
            return Status.cudaErrorMemoryAllocation, None
        self.left -= size
        block = ctypes.create_string_buffer(size)
        self.blocks[ctypes.addressof(block)] = block
        return Status.cudaSuccess, ctypes.addressof(block)

    def cudaFree(self, address):
        self.left += len(self.blocks.pop(address))
        return (Status.cudaSuccess,)

    def cudaMemcpyAsync(self, target, source, size, kind, _stream):
        device, host = (target, source) if kind == self.cudaMemcpyKind.cudaMemcpyHostToDevice else (source, target)
        way = "to the GPU" if device == target else "to the host"
        self.diary.append(f"copy {way}, pinned" if host in self.pinned else f"copy {way}")
        assert device in self.blocks, "no memory of the GPU"
        assert size <= len(self.blocks[device])
        ctypes.memmove(target, source, size)
        return (Status.cudaSuccess,)

    def cudaMallocHost(self, size):
        block = ctypes.create_string_buffer(size)
        self.pinned[ctypes.addressof(block)] = block
        return Status.cudaSuccess, ctypes.addressof(block)

    def cudaFreeHost(self, address):
        del self.pinned[address]
        return (Status.cudaSuccess,)

    def cudaEventCreate(self):
        self.events += 1
        return Status.cudaSuccess, self.events

    def cudaEventRecord(self, event, _stream):
        self.times[event] = len(self.times) + 1.0  # the fake's time: each recorded event is a millisecond later
        self.unready[event] = 1
        return (Status.cudaSuccess,)

    def cudaEventQuery(self, event):
        self.unready[event] -= 1
        return (Status.cudaErrorNotReady if self.unready[event] >= 0 else Status.cudaSuccess,)

    def cudaEventElapsedTime(self, before, after):
        return Status.cudaSuccess, self.times[after] - self.times[before]

    def cudaStreamCreate(self):
        self.streams += 1
        return Status.cudaSuccess, 6 + self.streams

    def cudaStreamSynchronize(self, _stream):
        if self.capturing is not None:
            return (Status.cudaErrorStreamCaptureUnsupported,)
        self.diary.append("wait")
        return (Status.cudaSuccess,)

    def cudaStreamBeginCapture(self, _stream, _mode):
        self.capturing = []
        return (Status.cudaSuccess,)

    def cudaStreamEndCapture(self, _stream):
        graph, self.capturing = self.capturing, None
        return Status.cudaSuccess, graph

    def cudaGraphInstantiate(self, graph, _flags):
        return Status.cudaSuccess, graph

    def cudaGraphDestroy(self, _handle):
        return (Status.cudaSuccess,)

    cudaEventDestroy = cudaStreamDestroy = cudaGraphExecDestroy = cudaGraphDestroy

    def cudaGraphLaunch(self, graph, _stream):
        self.diary.append("launch")
        for work in graph:
            work()
        return (Status.cudaSuccess,)

    def cudaGetErrorName(self, status):
        return Status.cudaSuccess, status.name.encode()

    def cudaGetErrorString(self, status):
        return Status.cudaSuccess, b"said CUDA"

    def put(self, work):
        """Do some work of a stream now, or note it down while a graph is captured."""
        if self.capturing is None:
            work()
        else:
            self.capturing.append(work)


class Engine:
    """Doubles x [batch, width]: y is as large; where `counts`, `found` has a length that only running tells."""

    def __init__(self, runtime, *, profiles, counts=False):
        self.runtime = runtime
        self.profiles = profiles
        self.names = ["x", "y", *(["found"] if counts else [])]
        self.num_io_tensors = len(self.names)
        self.num_optimization_profiles = len(profiles)
        self.contexts = []

    def get_tensor_name(self, number):
        return self.names[number]

    def get_tensor_mode(self, name):
        return "input" if name == "x" else "output"

    def get_tensor_dtype(self, _name):
        return np.float32

    def get_tensor_location(self, _name):
        return "device"

    def is_shape_inference_io(self, _name):
        return False

    def get_tensor_profile_shape(self, _name, profile):
        return self.profiles[profile]

    def create_execution_context(self, config=None):
        self.contexts.append(Context(self, config))
        return self.contexts[-1]

    def create_runtime_config(self):
        return types.SimpleNamespace(cuda_graph_strategy="disabled")


class Context:
    def __init__(self, engine, config):
        self.engine, self.config = engine, config
        self.profile = None
        self.shape = (-1, -1)
        self.addresses = {}
        self.allocators = {}

    def set_optimization_profile_async(self, profile, _stream):
        self.profile = profile
        return True

    def set_input_shape(self, _name, shape):
        least, _, greatest = self.engine.profiles[self.profile]
        assert self.engine.runtime.capturing is None, "shapes cannot be set while a graph is captured"
        self.shape = shape
        return all(low <= size <= high for low, size, high in zip(least, shape, greatest, strict=True))

    def infer_shapes(self):
        return []

    def get_tensor_shape(self, name):
        return (-1,) if name == "found" else self.shape

    def set_tensor_address(self, name, address):
        self.addresses[name] = address
        return True

    def set_output_allocator(self, name, allocator):
        self.allocators[name] = allocator
        return True

    def execute_async_v3(self, _stream):
        shape, addresses = self.shape, dict(self.addresses)

        def work():
            x = _array(addresses["x"], shape)
            np.copyto(_array(addresses["y"], shape), 2 * x)
            if (allocator := self.allocators.get("found")) is not None:
                positive = x[x > 0]
                address = allocator.reallocate_output("found", 0, positive.nbytes, 256)
                np.copyto(_array(address, positive.shape), positive)
                allocator.notify_shape("found", positive.shape)

        self.engine.runtime.diary.append(f"run {shape} on profile {self.profile}")
        self.engine.runtime.put(work)
        return True


def tensorrt(engine, *, itself=False):
    """Return a module in the place of `tensorrt`, whose runtime gives this engine for any plan but b"broken".

    With `itself` it captures CUDA graphs by itself, as TensorRT-RTX does.
    """
    severity = types.SimpleNamespace(INTERNAL_ERROR=0, ERROR=1, WARNING=2)

    class Logger:
        Severity = severity

        def __init__(self):
            pass

    class TheRuntime:
        def __init__(self, logger):
            self.logger = logger

        def deserialize_cuda_engine(self, plan):
            if plan == b"broken":
                self.logger.log(severity.ERROR, "the magic tag does not match")
                return None
            return engine

        def get_plugin_registry(self):
            return types.SimpleNamespace(
                load_library=lambda path: engine.runtime.diary.append(f"plugin {path}") or path
            )

    extra = {"CudaGraphStrategy": types.SimpleNamespace(WHOLE_GRAPH_CAPTURE="whole")} if itself else {}
    return types.SimpleNamespace(
        __name__="fake_tensorrt_runtime",
        __version__="10.13.0.35",
        Builder=object,
        ILogger=Logger,
        Runtime=TheRuntime,
        IOutputAllocator=type("IOutputAllocator", (), {}),
        TensorIOMode=types.SimpleNamespace(INPUT="input", OUTPUT="output"),
        TensorLocation=types.SimpleNamespace(DEVICE="device", HOST="host"),
        nptype=lambda dtype: dtype,
        init_libnvinfer_plugins=lambda logger, namespace: True,
        **extra,
    )


def _array(address, shape):
    size = int(np.prod(shape))
    buffer = (ctypes.c_float * max(1, size)).from_address(address)
    return np.frombuffer(buffer, np.float32)[:size].reshape(shape)
