"""The seconds that failed requests cost."""

import asyncio

import pytest

from engine.store.remote.attempts import Attempts
from engine.store.remote.objects import MissingError, RemoteError


async def slowly(error, seconds=0.05):
    await asyncio.sleep(seconds)
    raise error


def test_requests_that_fail_side_by_side_lose_the_same_seconds():
    attempts = Attempts(tries=1, budget=0.5)

    async def many():
        failing = (attempts.make(lambda: slowly(RemoteError("no answer"), 0.1)) for _ in range(16))
        return await asyncio.gather(*failing, return_exceptions=True)

    assert all(isinstance(each, RemoteError) for each in asyncio.run(many()))
    assert 0.1 <= attempts.lost < 0.5
    assert attempts.gone is None


@pytest.mark.parametrize(
    ("limits", "error", "times"),
    [({"budget": 0.09}, RemoteError, 2), ({"budget": 0.09}, MissingError, 2),
     ({"budget": 60, "first": 0.04}, RemoteError, 1)],
    ids=["failures one after the other", "slow answers that bring nothing", "a remote that has never answered"],
)  # fmt: skip
def test_a_remote_that_has_lost_too_many_seconds_is_gone(monkeypatch, limits, error, times):
    monkeypatch.setattr("engine.store.remote.attempts._SLOW", 0.01)
    attempts = Attempts(tries=1, **limits)
    for number in range(times):
        assert attempts.gone is None, number
        with pytest.raises(error):
            asyncio.run(attempts.make(lambda: slowly(error("no answer"))))
    assert attempts.gone is not None


def test_a_look_up_has_a_limit_of_its_own():
    attempts = Attempts(tries=1, budget=60.0)
    with pytest.raises(RemoteError, match="longer than"):
        asyncio.run(attempts.make(lambda: asyncio.sleep(30), seconds=0.05))
