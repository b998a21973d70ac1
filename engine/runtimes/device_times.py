"""Device times: how long a GPU computes and copies, by CUDA events, beside the latencies that a caller sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class DeviceTimes:
    """Median times of one call in milliseconds, with the names of trtexec's summary.

    "Pinned" copies are from and to page-locked memory of the host, "pageable" copies from and to ordinary memory.
    """

    enqueue_ms: float
    """trtexec: Enqueue Time. The time in which the host hands the call to the GPU."""
    gpu_compute_ms: float
    """trtexec: GPU Compute Time. The time between two CUDA events around the call, without copies."""
    h2d_pageable_ms: float
    h2d_pinned_ms: float
    """trtexec: H2D Latency. The copy of the inputs to the GPU."""
    d2h_pageable_ms: float
    d2h_pinned_ms: float
    """trtexec: D2H Latency. The copy of the outputs to the host."""
    latency_pageable_ms: float
    latency_pinned_ms: float
    """trtexec: Latency. The sum of H2D, GPU compute and D2H."""
    spin_wait_ms: float
    """The time that a host needs for a call without copies, if it asks in a loop whether the GPU is done."""
    queries_per_s: Mapping[str, float] = field(default_factory=dict)
    """trtexec: Throughput. The number of streams -> calls per second without copies, each stream with its context."""
