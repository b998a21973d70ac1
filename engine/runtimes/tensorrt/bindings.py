"""Bindings: the inputs and outputs of a TensorRT engine in the GPU's memory (not yet run with TensorRT on a GPU)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.runtimes.tensorrt.api import trt
from engine.runtimes.tensorrt.cudart import CudaStream, DeviceMemory, PinnedMemory

if TYPE_CHECKING:
    import numpy as np
    import tensorrt


class Context:
    """An execution context of an engine, and the bindings whose addresses were last set in it."""

    def __init__(self, engine: tensorrt.ICudaEngine, handle: tensorrt.IExecutionContext) -> None:
        self.engine = engine
        self.handle = handle
        self.bound: Bindings | None = None


class Bindings:
    """Inputs on the GPU and memory for outputs, for one execution context and one set of input shapes."""

    def __init__(
        self,
        context: Context,
        stream: CudaStream,
        *,
        inputs: Mapping[str, np.ndarray],
        gives: Sequence[str],
    ) -> None:
        """Copy the inputs to the GPU.

        Raises StepError where the execution context refuses an input's shape, or the GPU has too little memory.
        """
        self._of, self._stream = context, stream
        self._context, self._engine = context.handle, context.engine
        self._host: dict[str, np.ndarray] = {}
        self._device: dict[str, DeviceMemory] = {}
        self._allocators: dict[str, Any] = {}
        self._pinned: dict[str, PinnedMemory] = {}
        self._pageable: dict[str, np.ndarray] = {}
        context.bound = None
        for name, array in inputs.items():
            self._take(name, array)
        if open_ended := self._context.infer_shapes():
            raise StepError("TensorRT cannot tell the shapes of the outputs", [f"open: {', '.join(open_ended)}"])
        self._shapes = {name: shape_of(self._context.get_tensor_shape(name)) for name in gives}
        for name, shape in self._shapes.items():
            if min(shape, default=0) >= 0:
                self._device[name] = DeviceMemory(_bytes(shape, self._dtype(name)))
            else:  # the shape depends on the values of inputs: TensorRT requests memory during the run
                self._allocators[name] = _allocator()
        stream.wait()

    @property
    def allocates(self) -> bool:
        """Whether a run of the engine requests memory for outputs. A CUDA graph cannot request memory."""
        return bool(self._allocators)

    def execute(self) -> None:
        """Enqueue one run of the engine on the CUDA stream. Raises StepError where TensorRT refuses the run."""
        if self._of.bound is not self:  # other bindings have used the context since
            self._bind()
        if not self._context.execute_async_v3(self._stream.handle):
            raise StepError("TensorRT could not run the engine", ["its messages are above"])

    def copy_in(self, *, pinned: bool) -> None:
        """Enqueue the copies of the inputs to the GPU, from page-locked or from ordinary memory."""
        for name, array in self._host.items():
            if name in self._device and array.size:
                source = self._pinned_block(name, array.nbytes, array).address if pinned else array.ctypes.data
                self._device[name].write(source, self._stream)

    def copy_out(self, *, pinned: bool) -> None:
        """Enqueue the copies of the outputs to the host; an output whose size only the run tells is left out."""
        import numpy as np

        for name in self._shapes:
            if name not in self._device or not self._device[name].size:
                continue
            size = self._device[name].size
            if pinned:
                target = self._pinned_block(name, size).address
            else:
                target = self._pageable.setdefault(name, np.empty(size, np.uint8)).ctypes.data
            self._device[name].read(target, size, self._stream)

    def _pinned_block(self, name: str, size: int, array: np.ndarray | None = None) -> PinnedMemory:
        """Return page-locked memory for a tensor, which at its creation gets the bytes of `array`."""
        if name not in self._pinned:
            self._pinned[name] = PinnedMemory(size)
            if array is not None:
                ctypes.memmove(self._pinned[name].address, array.ctypes.data, size)
        return self._pinned[name]

    def outputs(self) -> dict[str, np.ndarray]:
        """Wait until the engine's last run has ended, and return copies of the run's outputs by name."""
        import numpy as np

        copies: dict[str, np.ndarray] = {}
        self._stream.wait()
        for name, shape in self._shapes.items():
            allocator = self._allocators.get(name)
            memory = self._device[name] if allocator is None else allocator.memory
            copies[name] = np.empty(shape if allocator is None else allocator.shape, self._dtype(name))
            if copies[name].size:
                memory.read(copies[name].ctypes.data, copies[name].nbytes, self._stream)
        self._stream.wait()
        return copies

    def _take(self, name: str, array: np.ndarray) -> None:
        import numpy as np

        dtype = self._dtype(name)
        fits = np.can_cast(array.dtype, dtype, "same_kind")
        if not fits or not self._context.set_input_shape(name, tuple(array.shape)):
            raise StepError(
                f"TensorRT does not take the input {name}", [f"{array.dtype}{list(array.shape)}, wanted is {dtype}"]
            )
        self._host[name] = np.ascontiguousarray(array.astype(dtype, copy=False)).reshape(array.shape)
        if self._engine.get_tensor_location(name) == trt.TensorLocation.DEVICE:
            self._device[name] = DeviceMemory(self._host[name].nbytes)
            if self._host[name].size:
                self._device[name].write(self._host[name].ctypes.data, self._stream)
        else:  # a shape tensor: `infer_shapes` reads its values, in the memory of the host
            self._context.set_tensor_address(name, self._host[name].ctypes.data)

    def _bind(self) -> None:
        self._of.bound = self
        for name, array in self._host.items():
            self._context.set_input_shape(name, tuple(array.shape))
            address = self._device[name].address if name in self._device else array.ctypes.data
            self._context.set_tensor_address(name, address)
        for name in self._shapes:
            allocator: Any = self._allocators.get(name)  # None removes the allocator of other bindings
            self._context.set_output_allocator(name, allocator)
            if name in self._device:
                self._context.set_tensor_address(name, self._device[name].address)

    def _dtype(self, name: str) -> np.dtype[Any]:
        import numpy as np

        to_numpy: Any = trt.nptype  # the stub has no types for `nptype`
        dtype: np.dtype[Any] = np.dtype(to_numpy(self._engine.get_tensor_dtype(name)))
        return dtype


def shape_of(dims: Any) -> tuple[int, ...]:
    """Return TensorRT's `Dims` as a tuple; -1 is an extent that is not known yet."""
    return tuple(int(extent) for extent in dims)


def _bytes(shape: Sequence[int], dtype: np.dtype[Any]) -> int:
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    return size


def _allocator() -> Any:
    """Return an allocator that gives TensorRT memory for an output, and stores the output's shape."""
    base: Any = trt.IOutputAllocator

    class Allocator(base):  # type: ignore[misc]  # the base class exists only where TensorRT is installed
        def __init__(self) -> None:
            base.__init__(self)
            self.memory = DeviceMemory(1)
            self.shape: tuple[int, ...] = ()

        def reallocate_output(self, _name: str, _memory: int, size: int, _alignment: int) -> int:
            if size > self.memory.size:
                self.memory = DeviceMemory(size)  # cudaMalloc aligns for every type
            return self.memory.address

        def reallocate_output_async(self, name: str, memory: int, size: int, alignment: int, _stream: int) -> int:
            return self.reallocate_output(name, memory, size, alignment)

        def notify_shape(self, _name: str, shape: Any) -> None:
            self.shape = shape_of(shape)

    return Allocator()
