"""A race by a clock that only calls move on: figures, leads over the baseline, and who is timed no further."""

import pytest
from timed_machine import Machine

from engine.kit.bench import race
from engine.kit.bench.interleaving import Budget
from engine.kit.bench.race import Entrant, RaceReport
from engine.kit.bench.report import Unmeasured

BUDGET = Budget(seconds=6.0, warm_up=0.3, rounds=10)


def raced(*seconds, rows=None, cut=None, by=race.P50):
    """Race entrants by the seconds of their calls; return the rows and the names in the order of their calls."""
    machine = Machine()
    entrants = [
        Entrant(contender=machine.contender(str(number), each), shape={"batch": many}, rows=many, threads=1)
        for number, (each, many) in enumerate(zip(seconds, rows or [1] * len(seconds), strict=True))
    ]
    timed = race.run(entrants, BUDGET, cut=cut, by=by, clock=machine.clock)
    return [row for row, _ in timed], machine.diary


def test_a_row_has_latencies_and_rows_per_second_and_the_lead_over_the_baseline():
    (first, fast, slow), _ = raced(0.010, 0.005, 0.020, rows=[1, 1, 8])
    assert (first.p50_ms, first.p95_ms, first.p99_ms, first.rows_per_s) == pytest.approx((10, 10, 10, 100))
    assert first.leads == {}
    assert first.rounds == fast.rounds == slow.rounds == 10
    assert {name: lead.ratio for name, lead in fast.leads.items()} == pytest.approx(
        {race.P50: 2.0, race.P95: 2.0, race.ROWS_PER_S: 2.0}
    )
    assert slow.rows_per_s == pytest.approx(400)
    assert slow.leads[race.P50].ratio == pytest.approx(0.5)
    assert slow.leads[race.P50].is_surely_slower
    assert slow.leads[race.ROWS_PER_S].ratio == pytest.approx(4.0)
    assert slow.leads[race.ROWS_PER_S].is_sure


def test_who_is_surely_too_slow_is_timed_no_further_and_says_after_how_many_rounds():
    (first, same, slow, slower), diary = raced(0.010, 0.010, 0.013, 0.020, cut=1.25)
    assert [(row.rounds, row.was_cut) for row in (first, same, slow, slower)] == [
        (10, False), (10, False), (7, True), (4, True),
    ]  # fmt: skip
    assert slower.leads[race.P50].ratio == pytest.approx(0.5)
    last = {name: len(diary) - diary[::-1].index(name) for name in "0123"}
    assert last["3"] < last["2"] < min(last["0"], last["1"])


def test_the_race_ends_when_nobody_but_the_baseline_is_left():
    rows, _ = raced(0.010, 0.030, 0.040, cut=1.25)
    assert [(row.rounds, row.was_cut) for row in rows] == [(4, False), (4, True), (4, True)]


def test_a_baseline_without_others_has_all_rounds():
    [row], _ = raced(0.010, cut=1.25)
    assert (row.rounds, row.was_cut) == (10, False)


def test_a_large_batch_is_cut_by_its_latency_and_not_by_its_rows_per_second():
    by_latency, _ = raced(0.010, 0.040, rows=[1, 8], cut=1.25)
    by_rows, _ = raced(0.010, 0.040, rows=[1, 8], cut=1.25, by=race.ROWS_PER_S)
    assert [row.was_cut for row in by_latency] == [False, True]
    assert [row.was_cut for row in by_rows] == [False, False]


def test_a_report_is_read_as_it_was_written():
    rows, _ = raced(0.010, 0.030, cut=1.25)
    report = RaceReport(cpu="c", rows=(*rows, Unmeasured(runtime="r", reason="why", shape={"batch": 1})))
    assert RaceReport.from_json(report.to_json()) == report
