"""Where latencies were measured, in the words that tables, errors, the history and the page share."""

import pytest

from engine.kit.bench.report import BenchReport
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
