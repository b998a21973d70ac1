"""Jobs that another builder runs: each wait is said once, and only after a while."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
import toy
from small_builds import SharedExecutor, project_in, variant

from engine.builder import loop
from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.digest import Digest
from engine.errors import StoreError
from engine.events import Ended, RunsElsewhere
from engine.key import digest_of
from engine.store.store import Store


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


class Resting(SharedExecutor):
    """An executor at which time passes as fast as the loop waits; builders on other machines hold the keys."""

    clock: SimpleNamespace

    def __init__(self, clock, *, until, there=""):
        super().__init__(2)
        self.clock, self.until, self.there, self.attempts = clock, until, there, []

    def poll(self, timeout):
        self.clock.now += timeout
        return super().poll(0.0 if self.clock.now < self.until else timeout)

    def claim(self, ident, lock):
        self.attempts.append(self.clock.now)
        if self.clock.now >= self.until:
            return lock
        lock.release()
        return self.there


def events_of(project, executor, *names):
    variants = [variant(project, toy.Begin(), name=name) for name in names]
    return list(run(variants, Lookup(Store(project / "cache")), executor, Options(out=project / "build")))


def waits(events):
    return [(event.recipe, event.job, event.builder) for event in events if isinstance(event, RunsElsewhere)]


def test_a_wait_is_said_once_and_not_at_once(project, clock):
    assert not waits(events_of(project, Resting(clock, until=100.9), "r"))
    clock.now = 200.0
    project_in(project)
    (project / "cache").rename(project / "old")
    events = events_of(project, Resting(clock, until=205.0), "r")
    assert waits(events) == [("r", "begin", "another builder")]
    assert [event.state for event in events if isinstance(event, Ended)] == ["built"]


def test_a_wait_for_one_key_is_said_once_for_all_recipes(project, clock):
    executor = Resting(clock, until=105.0, there="node 2")
    events = events_of(project, executor, "one", "two")
    assert waits(events) == [("one", "begin", "node 2")]
    assert [(event.recipe, event.state) for event in events if isinstance(event, Ended)] == [
        ("one", "built"),
        ("two", "cached"),
    ]
    assert len(set(executor.attempts)) == len(executor.attempts), "one attempt at a time"


def test_the_holder_on_this_machine_is_named(project, clock):
    store, other = Store(project / "cache"), Store(project / "cache")
    one = variant(project, toy.Begin())
    lookup = Lookup(store)
    lock = other.try_lock(digest_of(lookup.key(one.jobs[0], {})), task="r begin")
    executor = Resting(clock, until=0.0)
    poll, locks = executor.poll, [lock]

    def polled(timeout):
        if clock.now > 105.0 and locks:
            locks.pop().release()
        return poll(timeout)

    executor.poll = polled
    [event] = [event for event in run([one], lookup, executor, Options(out=project / "build"))
               if isinstance(event, RunsElsewhere)]  # fmt: skip
    assert event.pid
    assert event.host


def test_locks_are_tried_again_after_a_pause(project, clock):
    executor = Resting(clock, until=101.0)
    events_of(project, executor, "r")
    tried = executor.attempts
    assert {round(after - before, 3) for before, after in pairwise(tried)} == {loop.LOCK_SECONDS}


def test_a_lock_is_free_again_where_the_look_behind_it_fails(project, monkeypatch):
    locks = []

    def unreadable(*_):
        raise StoreError("the store cannot be read")

    class Failing(SharedExecutor):
        def claim(self, ident, lock):
            locks.append((ident, lock))
            monkeypatch.setattr(Lookup, "find", unreadable)
            return lock

    events = events_of(project, Failing(2), "r")
    assert [str(event.error) for event in events if isinstance(event, Ended)] == ["the store cannot be read"]
    [(ident, _)] = locks
    assert Store(project / "cache").try_lock(Digest(ident), task="r begin") is not None
