"""Tickets take the moves between states that make sense, and refuse all others."""

from types import SimpleNamespace

import pytest

from engine.builder.board import Board
from engine.builder.tickets import State, Ticket


def variant(**needs):
    jobs = tuple(SimpleNamespace(name=name, earlier=tuple(earlier), needs={}) for name, earlier in needs.items())
    return SimpleNamespace(name="v", jobs=jobs)


def board(**needs):
    return Board([variant(**needs)], {})


def test_what_needs_nothing_is_ready_and_the_rest_is_blocked_until_that_has_ended():
    jobs = board(a=[], b=["a"], c=["a", "b"])
    assert [ticket.state for ticket in jobs.tickets] == [State.READY, State.BLOCKED, State.BLOCKED]
    first = jobs.take(State.READY)
    jobs.end(first, "ended")
    assert [ticket.state for ticket in jobs.tickets] == [State.ENDED, State.READY, State.BLOCKED]
    assert jobs.needed(jobs.take(State.READY)) == [first]


def test_the_job_with_the_longest_way_behind_it_goes_first():
    jobs = board(a=[], b=[], c=["b"], d=["c"])
    assert [jobs.take(State.READY).job.name for _ in range(2)] == ["b", "a"]


def test_what_another_builder_makes_is_looked_up_again():
    jobs = board(a=[], b=[])
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
    ticket = Ticket(variant(), SimpleNamespace(name="a"), 0, 0.0, state=first)
    with pytest.raises(AssertionError, match="cannot go"):
        ticket.move(then)
    assert ticket.state is first
