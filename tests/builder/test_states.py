"""The table of states: tickets take the moves that make sense, and refuse all others; equal keys are one work."""

from types import SimpleNamespace

import pytest

from engine.builder.states import State, States


def variant(**needs):
    jobs = tuple(SimpleNamespace(name=name, earlier=tuple(earlier), needs={}) for name, earlier in needs.items())
    return SimpleNamespace(name="v", jobs=jobs)


def table(**needs):
    return States([variant(**needs)], {})


def ended(error=None):
    return SimpleNamespace(error=error)


def test_what_needs_nothing_is_ready_and_the_rest_is_blocked_until_that_has_ended():
    jobs = table(a=[], b=["a"], c=["a", "b"])
    assert [ticket.state for ticket in jobs.tickets] == [State.READY, State.BLOCKED, State.BLOCKED]
    first = jobs.take(State.READY)
    jobs.end(first, ended())
    assert [ticket.state for ticket in jobs.tickets] == [State.ENDED, State.READY, State.BLOCKED]
    assert jobs.take(State.READY).earlier == [first]
    assert not jobs.has_failed


def test_the_job_with_the_longest_way_behind_it_goes_first():
    jobs = table(a=[], b=[], c=["b"], d=["c"])
    assert [jobs.take(State.READY).job.name for _ in range(2)] == ["b", "a"]


def test_what_another_builder_makes_is_looked_up_again():
    jobs = table(a=[], b=[])
    for ticket in jobs.take_all(State.READY):
        jobs.move(ticket, State.STARTABLE)
        jobs.move(jobs.take(State.STARTABLE), State.LOCKED_ELSEWHERE)
    assert not jobs.has(State.READY, State.STARTABLE)
    for ticket in jobs.take_all(State.LOCKED_ELSEWHERE):
        jobs.move(ticket, State.READY)
    assert jobs.has(State.READY)
    assert not jobs.has(State.LOCKED_ELSEWHERE)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (State.BLOCKED, State.RUNNING),
        (State.READY, State.RUNNING),
        (State.LOCKED_ELSEWHERE, State.RUNNING),
        (State.RUNNING, State.STARTABLE),
        (State.ENDED, State.RUNNING),
        (State.ENDED, State.ENDED),
    ],
)
def test_a_move_that_cannot_be_is_refused(first, then):
    jobs = table(a=[])
    [ticket] = jobs.tickets
    ticket.state = first
    with pytest.raises(AssertionError, match="cannot go"):
        jobs.move(ticket, then)
    assert ticket.state is first


@pytest.fixture
def twins():
    """A table with two tickets of one key, of which the first leads."""
    jobs = table(a=[], b=[])
    first, second = jobs.take_all(State.READY)
    for ticket in (first, second):
        jobs.rekey(ticket, {"options.a": "1"})
    jobs.move(first, State.STARTABLE)
    jobs.take(State.STARTABLE)
    jobs.lead(first)
    jobs.move(first, State.LOCKED_ELSEWHERE)
    return jobs, first, second


def test_a_ticket_follows_the_one_that_leads_its_key_until_that_has_ended(twins):
    jobs, first, second = twins
    assert not jobs.follow(first)
    assert jobs.follow(second)
    assert jobs.leader(second.digest) is first
    [again] = jobs.take_all(State.LOCKED_ELSEWHERE)
    jobs.move(again, State.READY)
    assert second.state is State.FOLLOWING
    jobs.end(jobs.take(State.READY), ended())
    assert second.state is State.READY
    assert not jobs.follow(second)


def test_nobody_follows_a_ticket_that_has_another_key_now(twins):
    jobs, first, second = twins
    jobs.follow(second)
    jobs.rekey(first, {"options.a": "1"})
    assert second.state is State.FOLLOWING, "the key is the same"
    jobs.rekey(first, None)
    assert second.state is State.READY
    assert jobs.leader(second.digest) is None
    assert not jobs.follow(second)


def test_a_failure_is_known_to_the_whole_table():
    jobs = table(a=[], b=["a"])
    jobs.end(jobs.take(State.READY), ended(error="wrong"))
    assert jobs.has_failed
