"""What arrives while a batch is under way makes the next one."""

import asyncio
import time

import pytest

from engine.store.remote.background import Batches


def collected(count, work, most=4):
    """Add numbers by several tasks at a time."""
    numbers = iter(range(count))

    async def adding():
        batches = Batches(work, most=most)

        async def worker():
            for number in numbers:
                await batches.add(number)

        async with asyncio.timeout(20):
            await asyncio.gather(*(worker() for _ in range(8)))
            await batches.end()

    asyncio.run(adding())


def test_everything_is_done_once_in_batches_with_a_bound():
    done = []

    def work(batch):
        time.sleep(0.001)
        done.append(list(batch))

    collected(100, work)
    assert sorted(number for batch in done for number in batch) == list(range(100))
    assert max(map(len, done)) == 4


def test_an_error_of_the_work_reaches_who_adds_or_ends():
    def work(batch):
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        collected(100, work)
