"""The table of one call on a GPU."""

from engine.kit.bench.report import BenchReport, BenchRow
from engine.report import device_lines
from engine.runtimes.runner import DeviceTimes

TIMES = DeviceTimes(
    enqueue_ms=0.05, gpu_compute_ms=0.5, h2d_pageable_ms=0.03, h2d_pinned_ms=0.02, d2h_pageable_ms=0.01,
    d2h_pinned_ms=0.005, latency_pageable_ms=0.54, latency_pinned_ms=0.525, spin_wait_ms=0.51,
    queries_per_s={"1": 1900.0, "2": 2500.5},
)  # fmt: skip


def report(device):
    row = BenchRow.of_rounds(
        [[1.0]], shape={"batch": 1, "sequence": 16}, via="in-process", runtime="tensorrt-fp16", ours=True, ratios={},
    )  # fmt: skip
    fields = {name: getattr(row, name) for name in row.__dataclass_fields__}
    return BenchReport(threads=1, cpu="a CPU", rows=(BenchRow(**{**fields, "device": device}),))


def test_each_time_stands_under_trtexec_s_name():
    title, *rows, rates = device_lines.lines(report(TIMES))
    assert "CUDA events" in title
    headers, cells = rows[::3], [row.split() for row in rows[1::3]]
    assert all(len(row) <= 80 for row in rows)
    assert headers[0].split()[:4] == ["shape", "runtime", "enqueue", "GPU"]
    assert all(row[:5] == ["1", "x", "16", "tensorrt-fp16", "(ours)"] for row in cells)
    assert [cell for row in cells for cell in row[5:]] == [
        "0.050", "0.500", "0.030", "0.020", "0.010", "0.005", "0.540", "0.525", "0.510",
    ]  # fmt: skip
    assert rates == "  tensorrt-fp16 (ours) at 1 x 16: 1,900.0 calls/s with 1 stream, 2,500.5 calls/s with 2 streams"


def test_on_a_cpu_there_is_no_such_table():
    assert list(device_lines.lines(report(None))) == []


def test_the_times_are_read_again_from_a_record():
    assert BenchReport.from_json(report(TIMES).to_json(), BenchReport.version).rows[0].device == TIMES
