"""The seconds that failed requests cost."""

import asyncio

import pytest

from engine.store.remote.attempts import Attempts
from engine.store.remote.errors import RemoteError


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
