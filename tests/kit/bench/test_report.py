"""Where latencies were measured, in the words that tables, errors, the history and the page share."""

from dataclasses import replace

import pytest
from summaries import bench, row

from engine.kit.bench.report import BenchReport, ModelStart
from engine.machine.gpu_state import GpuReport

CLOCKS = {
    ", its clocks not known": {},
    " at 1590 MHz": {"sm_mhz": (1590, 1590), "steady": True},
    " at 585 to 1590 MHz": {"sm_mhz": (585, 1590), "steady": False},
    " at 585 to 1590 MHz, held back: power, heat": {
        "sm_mhz": (585, 1590), "steady": False, "throttled": ("power", "heat"),
    },
}  # fmt: skip


def test_without_a_gpu_the_device_is_the_cpu_with_its_threads():
    report = BenchReport(threads=2, cpu="a CPU", rows=())
    assert report.device == report.device_and_clocks == "a CPU, 2 threads"


@pytest.mark.parametrize("clocks", CLOCKS)
def test_with_a_gpu_the_device_is_the_gpu_and_its_clocks(clocks):
    report = BenchReport(threads=2, cpu="a CPU", rows=(), gpu=GpuReport(name="Tesla T4", **CLOCKS[clocks]))
    assert report.device == "Tesla T4"
    assert report.device_and_clocks == f"Tesla T4{clocks}"


@pytest.mark.parametrize(
    ("shape", "rate"), [({"batch": 8, "sequence": "samples"}, 2000), ({"batch": 1}, 250), ({"sequence": 16}, None)]
)
def test_rows_per_second_are_the_batch_divided_by_the_median(shape, rate):
    assert replace(row("m", ours=True), shape=shape, p50_ms=4.0).rows_per_s == rate


def test_a_report_without_pauses_and_starts_can_still_be_read():
    raw = bench().to_json()
    assert "starts" not in raw
    assert "paused_ms" not in raw["rows"][0]
    for version in (1, 2):
        old = BenchReport.from_json(raw, version)
        assert old.starts == ()
        assert [each.paused_ms for each in old.rows] == [None, None]


def test_a_start_says_its_figures_or_why_there_are_none():
    start = ModelStart(runtime="m", load_s=0.123, first_ms=4.56, peak_mib=51.1)
    assert str(start) == "load 0.12 s, first call 4.6 ms, peak memory 51 MiB"
    assert str(ModelStart(runtime="m", reason="no GPU")) == "start not measured: no GPU"
    assert BenchReport.from_json(replace(bench(), starts=(start,)).to_json()).starts == (start,)
