"""The table of states: tickets take the moves that make sense, and refuse all others; equal keys are one work."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builder.states import UNKNOWN_SECONDS, State, States, urgencies


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


def test_a_job_is_as_urgent_as_the_longest_way_behind_it():
    jobs = [("fetch", []), ("export", ["fetch"]), ("bench", ["export"]), ("quick", ["fetch"])]
    seconds = {"fetch": 1.0, "export": 10.0, "bench": 30.0, "quick": 0.5}
    assert urgencies(jobs, seconds) == {"bench": 30.0, "export": 40.0, "quick": 0.5, "fetch": 41.0}


def test_a_job_that_was_never_run_counts_as_an_ordinary_one():
    assert urgencies([("new", [])], {}) == {"new": UNKNOWN_SECONDS}


@given(st.lists(st.tuples(st.floats(0, 100), st.lists(st.integers(0, 30)))))
def test_what_is_needed_is_at_least_as_urgent_as_what_needs_it(drawn):
    jobs = [(number, [need for need in needs if need < number]) for number, (_, needs) in enumerate(drawn)]
    urgent = urgencies(jobs, {number: seconds for number, (seconds, _) in enumerate(drawn)})
    for name, needs in jobs:
        assert all(urgent[need] >= urgent[name] for need in needs)


def startable(*tickets):
    """A table with startable tickets of these urgencies, in these lanes."""
    jobs = table(**{name: [] for name, _, _ in tickets})
    ready = {ticket.job.name: ticket for ticket in jobs.take_all(State.READY)}
    for name, urgency, lane in tickets:
        ready[name].urgency, ready[name].lane = urgency, lane
        jobs.move(ready[name], State.STARTABLE)
    return jobs


def names(jobs, count):
    return [ticket and ticket.job.name for ticket in (jobs.take(State.STARTABLE) for _ in range(count))]


def test_the_queue_gives_the_most_urgent_first_and_among_equals_the_first():
    jobs = startable(("a", 1.0, None), ("b", 5.0, None), ("c", 1.0, None), ("d", 5.0, None))
    assert names(jobs, 4) == ["b", "d", "a", "c"]


def test_of_the_lanes_with_room_the_one_with_the_most_urgent_ticket_is_next():
    jobs = startable(("a", 1.0, "x"), ("b", 5.0, "y"), ("c", 3.0, "x"), ("d", 3.0, "z"))
    assert jobs.take(State.STARTABLE, lambda lane: lane != "y").job.name == "c", "as urgent as d, and earlier"
    assert names(jobs, 4) == ["b", "d", "a", None]


def test_a_lane_without_room_keeps_its_tickets():
    jobs = startable(("a", 1.0, "x"))
    assert jobs.take(State.STARTABLE, lambda _: False) is None
    assert names(jobs, 1) == ["a"]


def test_what_needs_a_job_that_is_opened_again_waits_for_it_wherever_it_stands():
    jobs = table(a=[], b=["a"], c=["a"], d=["a"])
    jobs.end(jobs.take(State.READY), ended())
    a, b, c, d = jobs.tickets
    for ticket in jobs.take_all(State.READY)[:2]:
        jobs.move(ticket, State.STARTABLE)
    assert not any(map(jobs.block, (b, c, d)))
    jobs.reopen(a)
    assert (a.state, a.ended, a.record) == (State.READY, None, None)
    assert all(map(jobs.block, (b, c, d)))
    assert [ticket.state for ticket in (b, c, d)] == [State.BLOCKED] * 3
    assert [ticket.open_needs for ticket in (b, c, d)] == [1] * 3
    jobs.end(a, ended())
    assert [ticket.state for ticket in (b, c, d)] == [State.READY] * 3
    assert not jobs.block(b)
