"""The CUDA half of the runner of TensorRT engines on a real GPU: memory, events, streams, graphs, times.

TensorRT itself is a stand-in: an engine whose run copies its input to its output, in the GPU's memory.
"""

import ctypes
import importlib.util

import fake_gpu
import numpy as np
import pytest

from engine.errors import StepError
from engine.runtimes.tensorrt import bindings, cudart, plugin_libraries
from engine.runtimes.tensorrt import runner as trt_runner
from engine.runtimes.tensorrt.cudart import checked, runtime

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda-bindings is not installed"),
]

PROFILE = ((1, 4), (256, 4), (1 << 20, 4))
LARGE = 1 << 28
"""The bytes of a block whose copies take long enough for a CPU to look at an event before the GPU has reached it."""


class Context(fake_gpu.Context):
    """Copies x to y on the stream; `found`, whose length the values tell, is copied through the host."""

    def execute_async_v3(self, stream):
        size = int(np.prod(self.shape)) * 4
        kind = runtime().cudaMemcpyKind
        x, y = self.addresses["x"], self.addresses["y"]
        checked(runtime().cudaMemcpyAsync(y, x, size, kind.cudaMemcpyDeviceToDevice, stream))
        if (allocator := self.allocators.get("found")) is not None:
            checked(runtime().cudaStreamSynchronize(stream))
            values = np.empty(self.shape, np.float32)
            checked(runtime().cudaMemcpy(values.ctypes.data, x, size, kind.cudaMemcpyDeviceToHost))
            positive = np.ascontiguousarray(values[values > 0])
            address = allocator.reallocate_output("found", 0, positive.nbytes, 256)
            to_device = kind.cudaMemcpyHostToDevice
            checked(runtime().cudaMemcpy(address, positive.ctypes.data, positive.nbytes, to_device))
            allocator.notify_shape("found", positive.shape)
        return True


class Engine(fake_gpu.Engine):
    def create_execution_context(self, config=None):
        self.contexts.append(Context(self, config))
        return self.contexts[-1]


@pytest.fixture
def stream():
    cudart.use(0)
    return cudart.CudaStream()


@pytest.fixture
def engine(monkeypatch):
    """Return a function that makes the runner's engine, with the stand-in in the place of TensorRT."""
    cudart.use(0)

    def make(*, cuda_graph=False, counts=False):
        nowhere = fake_gpu.Runtime()  # only its note that no graph is being captured is read
        module = fake_gpu.tensorrt(Engine(nowhere, profiles=(PROFILE,), counts=counts))
        for place in (trt_runner, bindings, plugin_libraries):
            monkeypatch.setattr(place, "trt", module)
        monkeypatch.setattr(trt_runner.trt_log, "begin", lambda: (module.ILogger(), None))
        return trt_runner._Engine(b"plan", cuda_graph=cuda_graph)

    return make


def x(rows):
    return {"x": np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)}


def free_bytes():
    return int(checked(runtime().cudaMemGetInfo())[0])


def test_bytes_come_back_from_the_gpu_as_they_went_there(stream):
    values, back = np.arange(1000, dtype=np.int64), np.zeros(1000, np.int64)
    pinned = cudart.PinnedMemory(values.nbytes)
    ctypes.memmove(pinned.address, values.ctypes.data, values.nbytes)
    block = cudart.DeviceMemory(values.nbytes)
    block.write(pinned.address, stream)
    block.read(back.ctypes.data, back.nbytes, stream)
    stream.wait()
    np.testing.assert_array_equal(back, values)


def test_memory_is_freed_with_its_owner(stream):
    stream.wait()
    before = free_bytes()
    block = cudart.DeviceMemory(LARGE)
    assert free_bytes() <= before - LARGE
    del block
    assert free_bytes() == before


def test_more_memory_than_the_gpu_has_is_refused_in_cudas_words(stream):
    with pytest.raises(StepError, match="CUDA refused") as caught:
        cudart.DeviceMemory(1 << 50)
    assert caught.value.facts[0].startswith("cudaErrorMemoryAllocation: ")
    assert "narrower profiles" in caught.value.hint
    stream.wait()  # the refusal spoils nothing that comes after it


def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(StepError, match="CUDA refused") as caught:
        cudart.use(1000)
    assert caught.value.facts[0].startswith("cudaErrorInvalidDevice: ")


def test_an_event_is_reached_when_the_work_before_it_is_done(stream):
    source, target = cudart.DeviceMemory(LARGE), cudart.DeviceMemory(LARGE)
    kind = runtime().cudaMemcpyKind.cudaMemcpyDeviceToDevice
    began, ended = cudart.CudaEvent(), cudart.CudaEvent()
    began.record(stream)
    for _ in range(200):
        checked(runtime().cudaMemcpyAsync(target.address, source.address, LARGE, kind, stream.handle))
    ended.record(stream)
    was_reached = ended.reached()
    stream.wait()
    assert not was_reached
    assert ended.reached()
    assert ended.since(began) > 0


def test_a_graph_runs_when_it_is_launched_and_not_while_it_is_captured(stream):
    values, back = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    pinned, block = cudart.PinnedMemory(values.nbytes), cudart.DeviceMemory(values.nbytes)
    block.write(back.ctypes.data, stream)
    stream.wait()
    ctypes.memmove(pinned.address, values.ctypes.data, values.nbytes)
    graph = stream.captured(lambda: block.write(pinned.address, stream))
    block.read(back.ctypes.data, back.nbytes, stream)
    stream.wait()
    assert not back.any()
    graph.launch(stream)
    block.read(back.ctypes.data, back.nbytes, stream)
    stream.wait()
    np.testing.assert_array_equal(back, values)


def test_work_that_cannot_be_captured_is_refused_and_the_stream_is_of_use_afterwards(stream):
    with pytest.raises(StepError, match="CUDA refused") as caught:
        stream.captured(stream.wait)
    assert caught.value.facts[0].startswith("cudaErrorStreamCapture")
    another = cudart.CudaStream()
    block, back = cudart.DeviceMemory(4), np.zeros(1, np.float32)
    block.write(np.ones(1, np.float32).ctypes.data, another)
    block.read(back.ctypes.data, 4, another)
    another.wait()
    assert back[0] == 1


@pytest.mark.parametrize("rows", [1, 2, 256])
def test_an_engine_gives_its_outputs(engine, rows):
    loaded = engine(counts=True)
    for inputs in (x(rows), x(rows + 1), x(rows)):
        answers = loaded.run(inputs)
        np.testing.assert_array_equal(answers["y"], inputs["x"])
        np.testing.assert_array_equal(answers["found"], inputs["x"][inputs["x"] > 0])


@pytest.mark.parametrize("cuda_graph", [False, True])
def test_a_call_that_is_prepared_runs_again_and_again(engine, cuda_graph):
    loaded, inputs = engine(cuda_graph=cuda_graph), x(256)
    call = loaded.prepare(inputs)
    for _ in range(10):
        call()
    np.testing.assert_array_equal(loaded.run(inputs)["y"], inputs["x"])
    call()


@pytest.mark.parametrize("cuda_graph", [False, True])
def test_the_times_of_a_call_fit_together(engine, cuda_graph):
    rows = 1 << 20  # 16 MiB
    times = engine(cuda_graph=cuda_graph).device_times(x(rows))
    print(times)
    copies = (times.h2d_pageable_ms, times.h2d_pinned_ms, times.d2h_pageable_ms, times.d2h_pinned_ms)
    assert min(*copies, times.enqueue_ms, times.spin_wait_ms) > 0
    # The bytes cross the bus, which is slower than the GPU's own memory.
    assert times.gpu_compute_ms < min(copies)
    assert times.latency_pinned_ms < times.latency_pageable_ms
    # Both take microseconds here, and events add some of their own: the wait is longer, but for the noise.
    assert times.gpu_compute_ms < 2 * times.spin_wait_ms
    assert list(times.queries_per_s) == ["1", "2", "4"]
    # The calls of one stream run one after the other, and without an event before and after each.
    assert times.queries_per_s["1"] < 1e3 / times.gpu_compute_ms * 3
