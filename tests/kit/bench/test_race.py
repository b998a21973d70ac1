"""A race by a clock that only calls move on: figures, leads over the baseline, and who is timed no further."""

import math
import random

import pytest
from timed_machine import Machine

from engine.kit.bench import interleaving, race, stats
from engine.kit.bench.interleaving import Budget
from engine.kit.bench.race import Entrant, RaceReport
from engine.kit.bench.report import Unmeasured

BUDGET = Budget(seconds=6.0, warm_up=0.3, rounds=10)
CUT = 1.25
RACES, ROUNDS, CALLS = 400, 10, 9


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


def round_after(ratio, *, noise, seed):
    """Yield for each round how many times slower a contestant is whose calls take `ratio` times as long.

    The speed of the machine drifts by 2 % from turn to turn, and halves for some turns. `noise` is the standard
    deviation of a whole turn, which other programs cause; calls vary by 5 %, and one of twenty takes half longer.
    """
    draw = random.Random(seed)
    speed, slow_turns = 1.0, 0
    for number in range(ROUNDS):
        took = {}
        for index in interleaving.turn_order(number, 2):
            speed *= math.exp(draw.gauss(0, 0.02))
            slow_turns = max(0, slow_turns - 1) or (3 if draw.random() < 0.02 else 0)
            turn = speed * (2 if slow_turns else 1) * math.exp(draw.gauss(0, noise)) * (ratio if index else 1)
            took[index] = [
                turn * math.exp(draw.gauss(0, 0.05)) * (1.5 if draw.random() < 0.05 else 1) for _ in range(CALLS)
            ]
        yield stats.median(took[1]) / stats.median(took[0])


def cut_after(ratio, *, noise, seed):
    """Return after how many rounds a contestant is cut; None for one that has all rounds."""
    slower = []
    for each in round_after(ratio, noise=noise, seed=seed):
        slower.append(each)
        if race.is_cut(slower, CUT):
            return len(slower)
    return None


@pytest.mark.parametrize("noise", [0.02, 0.07, 0.2])
def test_fewer_than_one_of_a_hundred_is_cut_that_is_3_percent_inside(noise):
    false = sum(cut_after(0.97 * CUT, noise=noise, seed=seed) is not None for seed in range(RACES))
    assert false / RACES < 0.01


def test_most_that_are_clearly_outside_are_cut_and_most_of_those_early():
    cuts = [cut_after(1.5 * CUT, noise=0.07, seed=seed) for seed in range(300)]
    assert sum(each is not None for each in cuts) > 0.9 * len(cuts)
    assert sum(each == 4 for each in cuts) > 0.5 * len(cuts)


def test_the_first_rounds_alone_and_one_round_inside_cut_nobody():
    assert not any(race.is_cut([9.0] * rounds, CUT) for rounds in range(4))
    assert race.is_cut([9.0] * 4, CUT)
    assert not race.is_cut([9.0, 9.0, 1.5, 9.0], CUT)
    assert race.is_cut([1.3] * 7, CUT)
    assert not race.is_cut([*[9.0] * 6, 1.2], CUT)
