"""Sweeps by a simulated clock: whole sweeps in turns, in rounds that fit into the time."""

import pytest

from engine.kit.bench import sweeps
from engine.kit.bench.interleaving import Budget, Contender
from engine.kit.bench.sweeps import Sweep


class Machine:
    """A clock that each call moves on by the seconds that its batch takes."""

    def __init__(self):
        self.now, self.calls = 0.0, []

    def clock(self):
        return self.now

    def sweep(self, name, *seconds):
        def prepare(batch):
            def call():
                self.calls.append(name)
                self.now += batch["seconds"]

            return call

        contender = Contender(runtime=name, via="in-process", ours=True, prepare=prepare)
        return Sweep(contender, [{"seconds": each} for each in seconds])


def test_a_turn_holds_whole_sweeps_whose_calls_are_timed_apart():
    machine = Machine()
    slow, fast = machine.sweep("slow", 0.2, 0.1), machine.sweep("fast", 0.05)
    rounds = sweeps.measure([slow, fast], Budget(seconds=6, warm_up=0, rounds=5), clock=machine.clock)
    assert [len(each) for each in rounds] == [5, 5]
    for calls in rounds[0]:
        assert calls == pytest.approx([0.2, 0.1] * (len(calls) // 2))
    assert slow.seconds(rounds[0]) == pytest.approx([0.3] * 5)
    assert fast.seconds(rounds[1]) == pytest.approx([0.05] * 5)
    assert machine.now < 8


def test_long_sweeps_have_fewer_rounds_but_at_least_three():
    machine = Machine()
    taken = [machine.sweep("a", 2.0), machine.sweep("b", 2.0)]
    rounds = sweeps.measure(taken, Budget(seconds=1, warm_up=0, rounds=10), clock=machine.clock)
    assert [len(each) for each in rounds] == [3, 3]
    assert all(len(calls) == 1 for each in rounds for calls in each)


def test_the_order_of_the_turns_changes_from_round_to_round():
    machine = Machine()
    taken = [machine.sweep(name, 1.0) for name in "abc"]
    sweeps.measure(taken, Budget(seconds=3, warm_up=0, rounds=3), clock=machine.clock)
    turns = machine.calls[3:][::2]  # after the warm-up; each turn is an untimed call and a timed one
    assert "".join(turns) == "abc" + "cba" + "bca"


def test_a_longer_budget_measures_more_sweeps():
    machine = Machine()
    budget = Budget(seconds=1, warm_up=0.1, rounds=5)
    counts = [
        sum(map(len, sweeps.measure([machine.sweep("a", 0.01)], each, clock=machine.clock)[0]))
        for each in (budget, budget.longer(2))
    ]
    assert counts[1] >= 1.9 * counts[0]
