import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest
from timed_machine import Machine, contender

from engine.kit.bench import interleaving
from engine.kit.bench.interleaving import Budget, bench_rows


def measure(*given, **options):
    """Return the rounds of hot calls of each contender."""
    return [timed.hot for timed in interleaving.measure(*given, **options)]


def turns(diary):
    return [name for previous, name in zip([None, *diary], diary, strict=False) if name != previous]


def test_contenders_take_turns_and_none_always_follows_the_same_one():
    machine = Machine()
    three = [machine.contender(name, 0.001) for name in "ABC"]
    measure(three, {}, Budget(seconds=0.3, warm_up=0.03, rounds=3), clock=machine.clock)
    assert "".join(turns(machine.diary)).endswith("ABC" + "BA" + "BCA")  # C has two turns in a row


def test_latencies_are_what_the_clock_says():
    machine = Machine()
    both = [machine.contender("fast", 0.001), machine.contender("slow", 0.004)]
    fast, slow = measure(both, {}, Budget(seconds=1, warm_up=0.1, rounds=4), clock=machine.clock)
    assert len(fast) == len(slow) == 4
    assert all(value == pytest.approx(0.001) for turn in fast for value in turn)
    assert all(value == pytest.approx(0.004) for turn in slow for value in turn)
    assert len(fast[0]) > 3 * len(slow[0])


def test_what_is_slow_at_first_is_not_measured():
    machine = Machine()
    only = [machine.contender("A", 0.01, slow_at_first=7)]
    [measured] = measure(only, {}, Budget(seconds=1, warm_up=1, rounds=2), clock=machine.clock)
    assert all(value == pytest.approx(0.01) for turn in measured for value in turn)


def test_the_time_is_bounded_and_a_slow_model_still_gets_a_run_in_every_round():
    machine = Machine()
    budget = Budget(seconds=10, warm_up=2, rounds=5)
    [measured] = measure([machine.contender("A", 0.4)], {}, budget, clock=machine.clock)
    assert machine.now <= 14
    assert len(measured[0]) >= 1
    machine.diary.clear()
    [slow] = measure([machine.contender("A", 9.0)], {}, budget, clock=machine.clock)
    assert [len(turn) for turn in slow] == [1] * 5
    assert len(machine.diary) == 1 + 5  # one to warm up


def test_a_fast_model_gets_enough_runs_for_a_p99():
    machine = Machine()
    [measured] = measure([machine.contender("A", 0.001)], {}, Budget(), clock=machine.clock)
    assert sum(len(turn) for turn in measured) == 1000


def test_every_call_is_made_in_its_contender_s_own_context():
    machine, inside = Machine(), []

    @contextmanager
    def active():
        inside.append(True)
        yield
        inside.pop()

    def call():
        assert inside == [True]
        machine.now += 0.01

    measure([contender(call, active)], {}, Budget(seconds=0.2, warm_up=0.05, rounds=2), clock=machine.clock)
    assert inside == []


def test_a_machine_that_becomes_slow_midway_makes_runs_fewer_and_not_the_measurement_longer():
    machine, calls = Machine(), []

    def call():
        calls.append(machine.now)
        machine.now += 0.01 if machine.now < 1 else 1.0

    budget = Budget(seconds=4, warm_up=0.5, rounds=4)
    [measured] = measure([contender(call)], {}, budget, clock=machine.clock)
    assert machine.now < 4 * 5
    assert [len(turn) for turn in measured][1:] == [1, 1, 1]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 13])
def test_each_contender_begins_and_follows_each_other_one_equally_often(count):
    rounds = [interleaving.turn_order(number, count) for number in range(count * (1 + count % 2))]
    assert all(sorted(each) == list(range(count)) for each in rounds)
    begins = Counter(each[0] for each in rounds)
    follows = Counter(pair for each in rounds for pair in pairwise(each))
    assert len(set(begins.values())) == 1
    assert len(begins) == count
    assert len(follows) == count * (count - 1)
    assert len(set(follows.values())) <= 1


def test_ten_rounds_of_many_contenders_show_each_at_least_nine_others_before_it():
    rounds = [interleaving.turn_order(number, 13) for number in range(10)]
    before = [{each[each.index(index) - 1] for each in rounds if each[0] != index} for index in range(13)]
    assert min(map(len, before)) >= 9


def test_a_turn_begins_after_a_rest(monkeypatch):
    rests = []
    monkeypatch.setattr(interleaving.time, "sleep", rests.append)
    assert list(interleaving.turns(1, 2)) == [0, 1]
    assert len(rests) == 2
    assert min(rests) > 0.036


def test_copies_of_a_model_are_called_at_once_each_in_its_own_context_and_as_often():
    together, calls = threading.Barrier(2, timeout=20), Counter()
    inside = threading.local()

    @contextmanager
    def active():
        inside.is_active = True
        yield
        inside.is_active = False

    def copy(name):
        def call():
            assert inside.is_active
            calls[name] += 1
            together.wait()  # an error, where the other copy is not called meanwhile
            time.sleep(0.001)

        return replace(contender(call, active), runtime=name)

    pair = replace(copy("a"), copies=(copy("b"),))
    [rounds] = measure([pair], {}, Budget(seconds=0.2, warm_up=0, rounds=2))
    assert calls["a"] == calls["b"]
    assert all(len(each) > 2 and len(each) % 2 == 0 for each in rounds)


def test_a_contender_that_is_out_has_no_further_turn():
    machine = Machine()
    three = [machine.contender(name, 0.001) for name in "ABC"]
    seen = []

    def out(latencies):
        seen.append([len(each) for each in latencies])
        return [1] if len(latencies[1]) == 2 else []

    measured = measure(three, {}, Budget(seconds=0.4, warm_up=0.03, rounds=4), out=out, clock=machine.clock)
    assert [len(each) for each in measured] == [4, 2, 4]
    assert seen == [[1, 1, 1], [2, 2, 2], [3, 2, 3], [4, 2, 4]]


def sleepy(machine, seconds):
    """A contender whose call takes three times as long after a pause."""
    state = {"until": machine.now}

    def call():
        machine.now += seconds * (1 if machine.now == state["until"] else 3)
        state["until"] = machine.now

    return contender(call)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_first_call_of_each_turn_comes_after_a_pause_and_is_no_hot_call(count, monkeypatch):
    machine, pauses = Machine(), []

    def sleep(seconds):
        pauses.append(seconds)
        machine.now += 0.06

    monkeypatch.setattr(interleaving.time, "sleep", sleep)
    timed = interleaving.measure(
        [sleepy(machine, 0.001) for _ in range(count)], {}, Budget(seconds=1, rounds=4), clock=machine.clock
    )
    assert len(pauses) == 4 * count
    for calls in timed:
        assert calls.paused == [pytest.approx(0.003)] * 4
        assert all(value == pytest.approx(0.001) for turn in calls.hot for value in turn)
    [(row, _), *_] = bench_rows({"batch": 2}, {}, [sleepy(machine, 0.001)], Budget(rounds=4), clock=machine.clock)
    assert (row.p50_ms, row.paused_ms, row.interval("paused_ms")) == (1.0, 3.0, (3.0, 3.0))
    assert row.rows_per_s == 2000


def test_a_call_that_fills_its_turn_is_hot_alone():
    machine = Machine()
    only, budget = machine.contender("A", 9.0), Budget(seconds=10, rounds=5)
    [timed] = interleaving.measure([only], {}, budget, clock=machine.clock)
    assert (timed.hot, timed.paused) == ([[9.0]] * 5, [])
    [(row, _)] = bench_rows({"batch": 1}, {}, [only], budget, clock=machine.clock)
    assert (row.p50_ms, row.paused_ms, "paused_ms" in row.intervals) == (9000.0, None, False)


@pytest.mark.parametrize(("share", "is_busy"), [(0.0, False), (0.08, False), (0.12, True), (1.7, True)])
def test_a_steady_wait_for_a_cpu_is_found_though_the_calls_vary_little(share, is_busy, monkeypatch):
    machine = Machine()
    monkeypatch.setattr(interleaving, "_waited", lambda: machine.now * share)
    [(row, _)] = bench_rows(
        {"batch": 1}, {}, [machine.contender("A", 0.001)], Budget(seconds=0.5, warm_up=0), clock=machine.clock
    )
    assert (row.noise, row.waited, row.is_busy) == (0.0, pytest.approx(share), is_busy)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux keeps a process on one CPU")
def test_two_processes_on_one_cpu_wait_for_each_other(waited, monkeypatch):
    monkeypatch.setattr(interleaving, "_waited", waited)
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    loop = "import os, sys; print(flush=True)\nwhile os.getppid() == int(sys.argv[1]): pass"
    other = subprocess.Popen([sys.executable, "-c", loop, str(os.getpid())], stdout=subprocess.PIPE)
    try:
        other.stdout.readline()
        end = time.thread_time() + 0.2
        _, share = interleaving.with_wait(lambda: all(iter(lambda: time.thread_time() < end, None)), time.monotonic)
    finally:
        other.kill()
        other.communicate()
        os.sched_setaffinity(0, cpus)
    assert share > 0.2
