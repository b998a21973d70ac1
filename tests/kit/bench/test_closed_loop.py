"""Clients in a closed loop: how many requests are under way, whose they are, and what an answer takes."""

import threading
import time
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
        self.asked = []

    def answer(self, request):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.asked.append(request)
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
    assert set(server.asked) == {0, 1, 2}
    assert len(rounds) == BUDGET.rounds
    assert all(0.01 / clients <= each for each in rounds)


def test_the_slower_contender_takes_longer_for_an_answer():
    slow, fast = Server(0.02), Server(0.005)
    took = closed_loop.rounds([slow.calls(1), fast.calls(1)], clients=2, budget=BUDGET)
    assert all(slower > faster for slower, faster in zip(*took, strict=True))


def test_a_request_that_outlasts_a_turn_is_sent_and_counted():
    server = Server(0.15)
    [rounds] = closed_loop.rounds([server.calls(1)], clients=1, budget=BUDGET)
    assert all(each >= 0.15 for each in rounds)


@pytest.mark.parametrize("failing", [0, 5])
def test_a_request_that_fails_ends_the_measurement(failing):
    sent = []

    def ask():
        sent.append(1)
        if len(sent) > failing:
            raise RuntimeError("no answer")
        time.sleep(0.001)

    with pytest.raises(RuntimeError, match="no answer"):
        closed_loop.rounds([[ask]], clients=1, budget=BUDGET)


def test_a_client_that_fails_at_once_does_not_let_the_others_wait():
    def fail():
        raise RuntimeError("no answer")

    began = time.monotonic()
    with pytest.raises(RuntimeError, match="no answer"):
        closed_loop.rounds([[lambda: None, fail]], clients=4, budget=BUDGET)
    assert time.monotonic() - began < 10
