"""The server's counters, divided by the requests to the model that the client calls."""

import pytest

from engine.client import counters
from engine.client.model_metadata import ModelMetadata


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
    times = counters.between(
        ModelMetadata("e", (), (), composing_models=("part",)), counters.read(before), counters.read(after)
    )
    assert list(times) == ["e", "part"]
    assert times["e"].requests == 12
    assert times["part"].queue_ms == pytest.approx(4 / 12, abs=1e-4)
    restarted = counters.between(ModelMetadata("e", (), ()), counters.read(after), counters.read(before))
    assert restarted["e"].requests == 6
