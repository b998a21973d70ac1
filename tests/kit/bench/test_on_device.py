"""Times on the GPU are added to the rows of contenders that can measure them."""

from dataclasses import fields

from engine.kit.bench import on_device
from engine.kit.bench.interleaving import Budget, Contender, bench_rows
from engine.runtimes.runner import DeviceTimes, Runner

TIMES = DeviceTimes(**{each.name: 1.0 for each in fields(DeviceTimes) if each.name != "queries_per_s"})


def contender(name, device_times=None):
    return Contender.in_process(Runner(name, dict, lambda _: lambda: None, device_times=device_times))


def test_a_row_gets_the_times_of_its_own_contender_and_a_cpu_s_row_none():
    contenders = (contender("gpu", lambda _: TIMES), contender("cpu"))
    timed = bench_rows({}, {}, contenders, Budget(seconds=0.01, warm_up=0.01, rounds=2))
    rows = [row for row, _ in on_device.added(timed, contenders, {})]
    assert [(row.runtime, row.device) for row in rows] == [("gpu", TIMES), ("cpu", None)]
