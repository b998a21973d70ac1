"""Clients in a closed loop: how many requests are under way, whose they are, and what an answer takes."""

import threading
import time
from collections import Counter
from functools import partial

import pytest

from engine.kit.bench import closed_loop
from engine.kit.bench.interleaving import Budget

BUDGET = Budget(seconds=0.4, warm_up=0.1, rounds=4)


class Server:
    """Answers after some milliseconds, and counts requests and how many it had at once."""

    def __init__(self, seconds):
        self.seconds, self.lock = seconds, threading.Lock()
        self.now = self.most = 0
        self.requests = []

    def answer(self, request):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.requests.append(request)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1

    def calls(self, count):
        return [partial(self.answer, number) for number in range(count)]


@pytest.mark.parametrize("clients", [1, 4])
def test_each_client_has_one_request_under_way(clients):
    server = Server(0.01)
    [rounds] = closed_loop.rounds([server.calls(3)], clients=clients, budget=BUDGET)
    assert server.most == clients
    assert len(rounds) == BUDGET.rounds
    assert all(0.01 / clients <= each for each in rounds)


def test_all_contenders_are_sent_the_same_requests_and_each_equally_often():
    """Long requests count as often as short ones, however fast a contender is."""
    slow, fast = Server(0.008), Server(0.001)
    took = closed_loop.rounds([slow.calls(3), fast.calls(3)], clients=1, budget=BUDGET)
    assert slow.requests == fast.requests
    timed = Counter(slow.requests)
    woke = 1 + BUDGET.rounds  # the request 0 wakes the server in the warm-up and in each turn
    assert timed[0] - woke == timed[1] == timed[2]
    assert all(slower > faster for slower, faster in zip(*took, strict=True))


def test_a_turn_has_as_many_requests_as_fit():
    begins = []
    closed_loop.rounds([[lambda: begins.append(0.005)]], clients=1, budget=BUDGET, clock=lambda: sum(begins))
    a_turn = (len(begins) - 3) / BUDGET.rounds - 1  # without the warm-up and what wakes the server
    assert a_turn in (19, 20)  # 0.1 s for each of the four turns, by a clock that only requests move on


@pytest.mark.parametrize("clients", [1, 3])
def test_requests_that_outlast_a_turn_are_sent_twice_by_each_client(clients):
    server = Server(0.15)
    [rounds] = closed_loop.rounds([server.calls(1)], clients=clients, budget=BUDGET)
    assert all(each >= 0.15 / clients for each in rounds)
    assert len(server.requests) == (BUDGET.rounds + 1) * 3 * clients


@pytest.mark.parametrize(("failing", "clients"), [(0, 1), (5, 1), (3, 4)])
def test_a_request_that_fails_ends_the_measurement(failing, clients):
    sent = []

    def ask():
        sent.append(1)
        if len(sent) > failing:
            raise RuntimeError("no answer")
        time.sleep(0.001)

    with pytest.raises(RuntimeError, match="no answer"):
        closed_loop.rounds([[ask]], clients=clients, budget=BUDGET)
