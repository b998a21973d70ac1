"""Device times of an engine: CUDA events around copies and runs (not yet run with TensorRT on a GPU)."""

# Source of the names: "trtexec", "Performance summary" in NVIDIA's TensorRT documentation. The sums are ours.

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.runtimes.runner import DeviceTimes
from engine.runtimes.tensorrt.cudart import CudaEvent

if TYPE_CHECKING:
    from engine.runtimes.tensorrt.bindings import Bindings
    from engine.runtimes.tensorrt.cudart import CudaStream

Lane = tuple["Bindings", "CudaStream"]
"""A stream, and bindings of an execution context of its own."""
_RUNS = 50
_WARM_UP = 5
_STREAMS = (1, 2, 4)
_DIGITS = 4


def measure(
    bindings: Bindings, stream: CudaStream, execute: Callable[[], None], lane: Callable[[], Lane]
) -> DeviceTimes:
    """Return the times of one call; `execute` enqueues it, and `lane` makes a further stream with its own context.

    Raises StepError where CUDA or TensorRT refuses a call.
    """
    for _ in range(_WARM_UP):
        execute()
    stream.wait()
    pageable = [_copied(bindings, stream, execute, pinned=False) for _ in range(_RUNS)]
    pinned = [_copied(bindings, stream, execute, pinned=True) for _ in range(_RUNS)]
    spun = [_spun(stream, execute) for _ in range(_RUNS)]
    enqueue, compute = (_median(call[place] for call in pinned) for place in (0, 2))
    return DeviceTimes(
        enqueue_ms=enqueue,
        gpu_compute_ms=compute,
        h2d_pageable_ms=_median(call[1] for call in pageable),
        h2d_pinned_ms=_median(call[1] for call in pinned),
        d2h_pageable_ms=_median(call[3] for call in pageable),
        d2h_pinned_ms=_median(call[3] for call in pinned),
        latency_pageable_ms=_median(sum(call[1:]) for call in pageable),
        latency_pinned_ms=_median(sum(call[1:]) for call in pinned),
        spin_wait_ms=_median(spun),
        queries_per_s=_throughput(lane),
    )


def _copied(
    bindings: Bindings, stream: CudaStream, execute: Callable[[], None], *, pinned: bool
) -> tuple[float, float, float, float]:
    """Return the milliseconds of one call: enqueue, inputs to the GPU, compute, outputs to the host."""
    events = [CudaEvent() for _ in range(4)]
    events[0].record(stream)
    bindings.copy_in(pinned=pinned)
    events[1].record(stream)
    began = time.perf_counter()
    execute()
    enqueued = time.perf_counter() - began
    events[2].record(stream)
    bindings.copy_out(pinned=pinned)
    events[3].record(stream)
    stream.wait()
    h2d, compute, d2h = (after.since(before) for before, after in pairwise(events))
    return enqueued * 1e3, h2d, compute, d2h


def _spun(stream: CudaStream, execute: Callable[[], None]) -> float:
    end = CudaEvent()
    began = time.perf_counter()
    execute()
    end.record(stream)
    while not end.reached():
        pass
    return (time.perf_counter() - began) * 1e3


def _throughput(lane: Callable[[], Lane]) -> dict[str, float]:
    """Return calls per second by the number of streams; fewer numbers where the GPU has no memory for more contexts."""
    lanes: list[Lane] = []
    rates: dict[str, float] = {}
    for count in _STREAMS:
        try:
            lanes += [lane() for _ in range(count - len(lanes))]
        except StepError as error:
            print(f"no throughput with {count} streams: {error.what}")
            break
        for calls in (_WARM_UP, _RUNS):
            began = time.perf_counter()
            for _ in range(calls):
                for bindings, _stream in lanes:
                    bindings.execute()
            for _bindings, stream in lanes:
                stream.wait()
            took = time.perf_counter() - began
        rates[str(count)] = round(count * _RUNS / took, 1)
    return rates


def _median(values: Iterable[float]) -> float:
    return round(median(values), _DIGITS)
