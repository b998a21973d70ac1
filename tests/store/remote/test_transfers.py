"""What is on its way: bytes of overlapping transfers, and at most one event a second."""

import pytest

from engine.events import Moved
from engine.store.remote import transfers
from engine.store.remote.transfers import Moving, reporter


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(transfers.time, "monotonic", lambda: now[0])
    return now


def test_transfers_that_overlap_count_together_and_the_next_ones_begin_anew():
    going = Moving("out")
    with going.transfer("export", 100):
        going.advance(60)
        with going.transfer("fuse", 50):
            assert going.moved("there") == Moved("out", "there", ("export", "fuse"), 60, 150)
        going.advance(90)
    assert going.moved("there") == Moved("out", "there", (), 150, 150)
    with going.transfer("package", 7):
        assert going.moved("there") == Moved("out", "there", ("package",), 0, 7)


def test_a_short_transfer_is_no_news_and_a_long_one_is_an_event_a_second_and_a_last_one(clock):
    coming, events = Moving("in"), []
    report = reporter("there", (coming, Moving("out")), events.append)
    with coming.transfer("export", 10):
        report()
    report()
    assert events == []
    with coming.transfer("export", 100):
        for _ in range(30):  # three seconds
            clock[0] += 0.1
            coming.advance(3)
            report()
    report()
    report()
    assert [event.jobs for event in events] == [("export",)] * (len(events) - 1) + [()]
    assert 3 <= len(events) <= 4
    assert [event.done for event in events] == sorted(event.done for event in events)
    assert (events[-1].done, events[-1].total) == (90, 100), "a transfer that failed ends with what it had"
