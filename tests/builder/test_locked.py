"""Jobs that another builder runs: each wait is said once, and only after a while."""

from types import SimpleNamespace

import pytest

from engine.builder import locked
from engine.builder.locked import LockedJobs
from engine.builder.tickets import State


def a_ticket(digest):
    names = {"variant": SimpleNamespace(name="minilm"), "job": SimpleNamespace(name="export")}
    return SimpleNamespace(digest=digest, state=State.LOCKED_ELSEWHERE, **names)


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(locked, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def jobs():
    holders = {"signed": SimpleNamespace(pid=7, host="here", since=1.0)}
    store = SimpleNamespace(holder_of=holders.get)
    return LockedJobs(store, SimpleNamespace(holder=lambda digest: {"there": "node 2"}.get(digest, "")))


def test_a_wait_is_said_once_and_not_at_once(jobs, clock):
    jobs.add(a_ticket("unsigned"))
    assert not list(jobs.announce())
    clock.now += 2.0
    [event] = jobs.announce()
    assert (event.recipe, event.job, event.builder) == ("minilm", "export", "another builder")
    clock.now += 2.0
    jobs.add(a_ticket("unsigned"))
    assert not list(jobs.announce())


def test_the_holder_is_named_where_it_is_known(jobs, clock):
    for digest in ("signed", "there"):
        jobs.add(a_ticket(digest))
    clock.now += 2.0
    here, there = jobs.announce()
    assert (here.pid, here.host) == (7, "here")
    assert there.builder == "node 2"


def test_a_job_that_has_ended_is_not_waited_for(jobs, clock):
    ticket = a_ticket("unsigned")
    jobs.add(ticket)
    ticket.state = State.ENDED
    clock.now += 2.0
    assert not list(jobs.announce())


def test_locks_are_tried_again_after_a_pause(jobs, clock):
    assert jobs.is_due()
    assert not jobs.is_due()
    clock.now += locked.POLL_SECONDS * 2
    assert jobs.is_due()
