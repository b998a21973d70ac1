"""Device lines: what the table says about the times of one call on a GPU, by CUDA events."""

from __future__ import annotations

from collections.abc import Iterator

from engine.kit.bench.report import BenchReport
from engine.report import grid
from engine.text import lists

_HEADER = (
    "shape", "runtime", "enqueue", "GPU compute", "H2D pageable", "H2D pinned", "D2H pageable", "D2H pinned",
    "latency pageable", "latency pinned", "spin wait",
)  # fmt: skip
_TEXTS = 2
"""The number of columns that are aligned on the left."""


def lines(bench: BenchReport) -> Iterator[str]:
    """Yield a table with a row for each model and shape whose GPU was measured; nothing where none was."""
    rows = [(row, row.device) for row in bench.rows if row.device is not None]
    if not rows:
        return
    yield "one call on the GPU by CUDA events, medians in ms, with trtexec's names (latency = H2D + GPU compute + D2H):"
    table: list[tuple[str, ...]] = [_HEADER]
    for row, times in rows:
        numbers = (
            times.enqueue_ms, times.gpu_compute_ms, times.h2d_pageable_ms, times.h2d_pinned_ms, times.d2h_pageable_ms,
            times.d2h_pinned_ms, times.latency_pageable_ms, times.latency_pinned_ms, times.spin_wait_ms,
        )  # fmt: skip
        shape = " x ".join(str(extent) for extent in row.shape.values())
        table.append((shape, row.title, *(f"{number:.3f}" for number in numbers)))
    places = [grid.LEFT] * _TEXTS + [grid.RIGHT] * (len(_HEADER) - _TEXTS)
    yield from (f"  {line}" for line in grid.lines(table, places, width=grid.KEPT - 2))
    for row, times in rows:
        shape = " x ".join(str(extent) for extent in row.shape.values())
        rates = (
            f"{rate:,.1f} calls/s with {lists.counted(int(streams), 'stream')}"
            for streams, rate in times.queries_per_s.items()
        )
        yield f"  {row.title} at {shape}: {', '.join(rates)}"
