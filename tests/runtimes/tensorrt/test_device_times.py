"""Times of one call on a fake GPU, which is a millisecond older at each event."""

import fake_gpu
import numpy as np
import pytest

from engine.runtimes.tensorrt import bindings, cudart, device_times, plugin_libraries
from engine.runtimes.tensorrt import runner as trt_runner

NARROW = ((1, 4), (2, 4), (8, 4))


def engine(monkeypatch, *, memory=1 << 30, cuda_graph=False):
    """Return the runner's engine on a fake GPU, and the fake CUDA runtime."""
    runtime = fake_gpu.Runtime(memory=memory)
    loaded = fake_gpu.Engine(runtime, profiles=(NARROW,))
    module = fake_gpu.tensorrt(loaded)
    for place in (trt_runner, bindings, plugin_libraries):
        monkeypatch.setattr(place, "trt", module)
    monkeypatch.setattr(trt_runner.trt_log, "begin", lambda: (module.ILogger(), None))
    monkeypatch.setattr(cudart, "runtime", lambda: runtime)
    return trt_runner._Engine(b"plan", cuda_graph=cuda_graph), runtime


def x(rows=2):
    return {"x": np.ones((rows, 4), np.float32)}


@pytest.mark.parametrize("cuda_graph", [False, True])
def test_compute_and_copies_are_the_times_between_events(monkeypatch, cuda_graph):
    loaded, runtime = engine(monkeypatch, cuda_graph=cuda_graph)
    times = loaded.device_times(x())
    assert times.gpu_compute_ms == times.h2d_pageable_ms == times.h2d_pinned_ms == times.d2h_pinned_ms == 1.0
    assert times.latency_pageable_ms == times.latency_pinned_ms == 3.0
    assert times.enqueue_ms > 0
    assert times.spin_wait_ms > 0
    for copy in ("to the GPU", "to the host"):
        assert runtime.diary.count(f"copy {copy}, pinned") == device_times._RUNS
    assert ("launch" in runtime.diary) is cuda_graph


def test_throughput_is_measured_with_several_streams_that_each_have_a_context(monkeypatch):
    loaded, runtime = engine(monkeypatch)
    times = loaded.device_times(x())
    assert list(times.queries_per_s) == ["1", "2", "4"]
    assert min(times.queries_per_s.values()) > 0
    assert len(loaded._engine.contexts) == 1 + 4
    assert runtime.streams == 1 + 4


def test_without_memory_for_more_contexts_there_are_fewer_numbers(monkeypatch, capsys):
    loaded, _ = engine(monkeypatch, memory=3 * 2 * 32)  # the engine's own call and two more
    times = loaded.device_times(x())
    assert list(times.queries_per_s) == ["1", "2"]
    assert "no throughput with 4 streams" in capsys.readouterr().out
