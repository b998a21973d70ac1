"""The seconds that failed requests cost."""

import asyncio

import pytest

from engine.store.remote.attempts import Attempts
from engine.store.remote.objects import MissingError, RemoteError


async def slow_failure():
    await asyncio.sleep(0.1)
    raise RemoteError("no answer")


def test_requests_that_fail_side_by_side_lose_the_same_seconds():
    attempts = Attempts(tries=1, budget=0.5)

    async def many():
        return await asyncio.gather(*(attempts.make(slow_failure) for _ in range(16)), return_exceptions=True)

    assert all(isinstance(each, RemoteError) for each in asyncio.run(many()))
    assert 0.1 <= attempts.lost < 0.5
    assert attempts.gone is None


def test_requests_that_fail_one_after_the_other_add_up():
    attempts = Attempts(tries=1, budget=0.15)
    for _ in range(2):
        with pytest.raises(RemoteError):
            asyncio.run(attempts.make(slow_failure))
    assert attempts.gone is not None


async def slowly(error):
    await asyncio.sleep(0.05)
    raise error


def test_slow_answers_that_bring_nothing_are_lost_time(monkeypatch):
    monkeypatch.setattr("engine.store.remote.attempts._SLOW", 0.01)
    attempts = Attempts(tries=1, budget=0.1)
    for _ in range(3):
        with pytest.raises(MissingError):
            asyncio.run(attempts.make(lambda: slowly(MissingError("none"))))
    assert attempts.gone is not None


def test_a_look_up_has_a_limit_of_its_own():
    attempts = Attempts(tries=1, budget=60.0)
    with pytest.raises(RemoteError, match="longer than"):
        asyncio.run(attempts.make(lambda: asyncio.sleep(30), seconds=0.05))


def test_a_remote_that_has_never_answered_gets_less_time():
    attempts = Attempts(tries=1, budget=60.0, first=0.04)
    with pytest.raises(RemoteError):
        asyncio.run(attempts.make(lambda: slowly(RemoteError("refused"))))
    assert attempts.gone is not None
