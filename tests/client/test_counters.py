"""A server's own counters, per request to the entry."""

import pytest

from engine.client import counters
from engine.client.entry import Entry


def test_counters_are_told_per_request_to_the_entry():
    def stats(count, queue):
        spent = {"success": {"count": count, "ns": 10 * queue}, "queue": {"count": count, "ns": queue}}
        return {
            "name": "part",
            "version": "1",
            "inference_count": count,
            "execution_count": count,
            "inference_stats": spent,
        }

    before, after = (
        [stats(number, number * 1e6), stats(3 * number, number * 1e6) | {"name": "e"}] for number in (2, 6)
    )
    found = counters.between(Entry("e", (), (), parts=("part",)), counters.read(before), counters.read(after))
    assert list(found) == ["e", "part"]
    assert found["e"].requests == 12
    assert found["part"].queue_ms == pytest.approx(4 / 12, abs=1e-4)
    restarted = counters.between(Entry("e", (), ()), counters.read(after), counters.read(before))
    assert restarted["e"].requests == 6
