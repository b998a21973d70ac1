"""Budgets on a busy machine: kept, missed or not decided, by simulated clocks that make every case certain."""

import random
from dataclasses import fields

import pytest

from engine.errors import Exit, JudgementError
from engine.kit.bench.budgets import REPEATING_SECONDS, decided_rows, judge
from engine.kit.bench.interleaving import Budget, Contender
from engine.kit.bench.report import BenchReport, BenchRow, BudgetVerdict
from engine.runtimes.runner import DeviceTimes, Runner

SHORT = Budget(seconds=1.0, warm_up=0.05, rounds=10, most_runs=50)


class BusyMachine:
    """A clock that calls move on; until `quiet_from`, whole stretches of time are slower by up to 60 %."""

    def __init__(self, *, quiet_from=float("inf")):
        self.now = 0.0
        self.quiet_from = quiet_from
        self.calls = 0

    def clock(self):
        return self.now

    def contender(self, seconds, *, ours=True, name="m"):
        def call():
            self.calls += 1
            stretch = random.Random(int(self.now / 0.1)).random() if self.now < self.quiet_from else 0.0
            self.now += seconds * (1 + 0.6 * stretch)

        return Contender(runtime=name, via="in-process", ours=ours, prepare=lambda _: call)


def measured(machine, limits, *contenders):
    rows = decided_rows({"batch": 1}, {}, contenders, SHORT, limits, until=REPEATING_SECONDS, clock=machine.clock)
    return BenchReport(threads=1, cpu="a CPU", rows=tuple(row for row, _ in rows))


@pytest.mark.parametrize(("limit", "verdict"), [(20.0, BudgetVerdict.KEPT), (5.0, BudgetVerdict.MISSED)])
def test_a_budget_far_from_the_latency_is_decided_at_once_even_on_a_busy_machine(limit, verdict):
    machine = BusyMachine()
    report = measured(machine, {"p50_ms": limit}, machine.contender(0.01))
    assert report.rows[0].verdict("p50_ms", limit) is verdict
    assert machine.now < 2 * SHORT.seconds


def test_a_budget_within_the_interval_is_measured_again_and_kept_when_the_machine_becomes_quiet(capsys):
    machine = BusyMachine(quiet_from=1.5)
    report = measured(machine, {"p50_ms": 12.0}, machine.contender(0.01))
    judge(report, [{"p50_ms": 12.0}])
    assert "not decided: batch 1: p50_ms is" in capsys.readouterr().out


def test_a_budget_within_the_interval_on_a_machine_that_stays_busy_is_not_decided():
    machine = BusyMachine()
    report = measured(machine, {"p50_ms": 13.0}, machine.contender(0.01))
    assert 2 * SHORT.seconds < machine.now < 10 * SHORT.seconds  # at most three measurements: 1 + 2 + 4 s and warm-ups
    with pytest.raises(JudgementError) as caught:
        judge(report, [{"p50_ms": 13.0}])
    text = str(caught.value)
    assert caught.value.exit is Exit.JUDGED
    assert "not decided" in caught.value.what
    assert "over its budget" not in text
    assert "the budget is 13" in text
    assert "--force bench" in caught.value.hint


def test_a_slow_model_is_not_measured_again_for_longer_than_the_time_limit():
    machine = BusyMachine()
    measured(machine, {"p50_ms": 30_000 * 1.3}, machine.contender(30.0))
    assert machine.now < 30 * 1.6 * (SHORT.rounds + 3)


def row(**more):
    fields = {"mean_ms": 5.0, "p50_ms": 5.0, "p95_ms": 6.0, "p99_ms": 7.0, "runs": 9, "noise": 0.06, "ratio_to": {}}
    return BenchRow(**{"shape": {"batch": 1}, "via": "in-process", "runtime": "m", "ours": True, **fields, **more})


def report_of(*rows):
    return BenchReport(threads=1, cpu="a CPU", rows=rows)


def test_the_error_names_the_noise_that_the_table_shows():
    rival = row(ours=False, runtime="rival", noise=0.93)
    report = report_of(row(intervals={"p50_ms": (4.9, 5.1)}), rival)
    with pytest.raises(JudgementError) as caught:
        judge(report, [{"p50_ms": 1.0}])
    assert "noise up to 93.0%" in str(caught.value)
    assert report.noise_in_words == "noise up to 93.0%"
    assert max(each["noise"] for each in report.to_json()["rows"]) == report.noise


def test_missed_budgets_come_before_those_that_are_not_decided():
    report = report_of(row(intervals={"p50_ms": (4.9, 5.1), "p95_ms": (5.5, 6.5), "p99_ms": (6.9, 7.1)}))
    with pytest.raises(JudgementError) as caught:
        judge(report, [{"p50_ms": 4.0, "p95_ms": 6.0, "p99_ms": 8.0}])
    missed = "batch 1: p50_ms is 5.000 (4.900 to 5.100), 1.000 over its budget of 4"
    assert caught.value.what == f"A latency is over its budget: {missed}"
    assert caught.value.facts[0] == "not decided: batch 1: p95_ms is 6.000 (5.500 to 6.500); the budget is 6"
    assert "p99_ms" not in str(caught.value)


def test_a_latency_exactly_at_the_end_of_its_interval_keeps_its_budget():
    one = row(intervals={"p50_ms": (4.0, 5.0)})
    assert one.verdict("p50_ms", 5.0) is BudgetVerdict.KEPT
    assert one.verdict("p50_ms", 4.0) is BudgetVerdict.UNDECIDED
    assert one.verdict("p50_ms", 3.999) is BudgetVerdict.MISSED


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"ratio_to": {"r": 3.25}, "ratio_intervals": {"r": (3.0, 3.5)}}, "3.25 x"),
        ({"ratio_to": {"r": 1.04}, "ratio_intervals": {"r": (0.97, 1.1)}}, "no difference"),
        ({"ratio_to": {"r": 0.9}, "ratio_intervals": {"r": (0.85, 0.95)}}, "0.90 x"),
        ({"ratio_to": {"r": 1.04}, "noise": 0.06}, "no difference"),
        ({"ratio_to": {"r": 1.2}, "noise": 0.06}, "1.20 x"),
        ({"ratio_to": {"r": 1.2}, "noise": None}, "1.20 x"),
        ({"ratio_to": {}}, ""),
    ],
)
def test_a_speed_up_within_the_noise_is_no_speed_up(fields, text):
    assert row(**fields).speed_up(row(ours=False, runtime="r")) == text


@pytest.mark.parametrize(
    ("quiet_from", "seconds", "text"),
    [(0.0, 0.01, "no difference"), (0.0, 0.04, "4.00 x"), (float("inf"), 0.04, "not comparable")],
)
def test_two_models_are_compared_only_if_the_machine_was_quiet(quiet_from, seconds, text):
    machine = BusyMachine(quiet_from=quiet_from)
    report = measured(machine, {}, machine.contender(0.01), machine.contender(seconds, ours=False, name="rival"))
    assert report.rows[0].speed_up(report.rows[1]) == text
    assert machine.now < 2 * SHORT.seconds, "without a budget, nothing is measured again"


def test_a_report_of_the_first_version_is_read_without_its_noise():
    old = report_of(row(noise=0.93)).to_json()
    report = BenchReport.from_json(old, 1)
    assert report.noise is None
    assert report.noise_in_words == "noise not known"
    judge(report, [{"p50_ms": 5.0}])
    with pytest.raises(JudgementError, match="over its budget"):
        judge(report, [{"p50_ms": 4.9}])


TIMES = DeviceTimes(**{each.name: 1.0 for each in fields(DeviceTimes) if each.name != "queries_per_s"})


def contender(name, device_times=None):
    return Contender.in_process(Runner(name, dict, lambda _: lambda: None, device_times=device_times))


def test_a_row_gets_the_times_of_its_own_contender_and_a_cpu_s_row_none():
    contenders = (contender("gpu", lambda _: TIMES), contender("cpu"))
    timed = decided_rows({}, {}, contenders, Budget(seconds=0.01, warm_up=0.01, rounds=2), {}, until=0.0)
    assert [(row.runtime, row.device) for row, _ in timed] == [("gpu", TIMES), ("cpu", None)]
