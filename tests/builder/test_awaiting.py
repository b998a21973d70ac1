"""Builds that wait for the results of other machines: results arrive one by one, and the waiting has an end."""

from types import SimpleNamespace

import pytest
import toy
from hardware_steps import T4, AlsoOnT4, OnT4
from small_builds import SharedExecutor, build, project_in, start, states, variant

from engine.builder import awaiting, loop
from engine.builder.awaiting import LONGEST_PAUSE
from engine.builder.executors.local import LocalExecutor
from engine.builder.live_rows import LiveRows
from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.errors import Exit
from engine.events import Awaits, Ended, Started
from engine.store.store import Store


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(awaiting, "SHORTEST_PAUSE", 0.01)
    return project_in(tmp_path)


@pytest.fixture
def on_t4(project):
    """Build on a machine that has the T4, with the same store."""

    def there(*steps):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Lookup, "waits_for", lambda *_: None)
            patch.setattr("engine.builder.facts.of", lambda *_: None)
            patch.setattr(LiveRows, "machine", {"gpu.name": "Tesla T4"})
            return states(build(project, variant(project, *steps)))

    return there


def events_of(project, *variants, **options):
    return start(project, *variants, **options)[0]


def until(events, kind, job=None):
    """Return the events up to the first of a kind, for a job."""
    taken = []
    for event in events:
        taken.append(event)
        if isinstance(event, kind) and job in (None, event.job):
            return taken
    raise AssertionError(taken)


def test_a_build_waits_and_goes_on_as_results_arrive_one_by_one(project, on_t4):
    steps = (toy.Begin(), OnT4(), AlsoOnT4(), toy.Close())
    events = events_of(project, variant(project, *steps), wait=60.0)
    begun = until(events, Awaits)
    assert states(begun) == {"begin": "built"}
    assert (begun[-1].job, begun[-1].waits_for) == ("on-t4", "T4 (sm_75) with tensorrt 10.x")
    assert "run the same command there" in begun[-1].advice
    assert on_t4(toy.Begin(), OnT4()) == {"begin": "cached", "on-t4": "built"}
    [arrived, *_] = until(events, Awaits, "also-on-t4")
    assert (arrived.job, arrived.state, arrived.arrival.machine) == ("on-t4", "cached", "Tesla T4")
    assert arrived.arrival.seconds > 0
    assert on_t4(*steps[:-1]) == {"begin": "cached", "on-t4": "cached", "also-on-t4": "built"}
    rest = list(events)
    assert states(rest) == {"also-on-t4": "cached", "close": "built"}
    assert rest[-1].exit is Exit.OK


def test_meanwhile_other_jobs_run_here(project):
    one = variant(project, toy.Begin(), OnT4(), name="one")
    two = variant(project, toy.Begin(text="other"), toy.Shout(), name="two")
    ended = {(event.recipe, event.job): event.state for event in events_of(project, one, two, wait=1.0)
             if isinstance(event, Ended)}  # fmt: skip
    assert ended == {("one", "begin"): "built", ("one", "on-t4"): "waiting",
                     ("two", "begin"): "built", ("two", "shout"): "built"}  # fmt: skip


def test_when_the_time_is_over_the_build_says_what_still_waits(project):
    events = list(events_of(project, variant(project, toy.Begin(), OnT4(), AlsoOnT4()), wait=0.1))
    assert states(events) == {"begin": "built", "on-t4": "waiting", "also-on-t4": "skipped"}
    assert [event.waits_for for event in events if isinstance(event, Ended) and event.state == "waiting"] == [str(T4)]
    assert events[-1].exit is Exit.WAITING


@pytest.mark.parametrize(("kind", "method"), [(LocalExecutor, "poll"), (Lookup, "find")], ids=["rests", "looks"])
def test_an_interruption_while_it_rests_or_looks_says_what_still_waits(project, monkeypatch, kind, method):
    events = events_of(project, variant(project, toy.Begin(), OnT4()), wait=float("inf"))
    until(events, Awaits)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, method, interrupted)
    rest = list(events)
    assert states(rest) == {"on-t4": "waiting"}
    assert rest[-1].exit is Exit.WAITING


def test_an_interruption_while_a_job_runs_here_interrupts_the_build(project):
    one = variant(project, toy.Begin(), OnT4(), name="one")
    two = variant(project, toy.Misbehave(how="sleep"), name="two")
    events = events_of(project, one, two, wait=float("inf"))
    until(events, Started, "misbehave")
    assert events.throw(KeyboardInterrupt).exit is Exit.INTERRUPTED


def test_a_failed_job_ends_the_waiting(project):
    one = variant(project, toy.Begin(), OnT4(), name="one")
    two = variant(project, toy.Misbehave(how="raise"), name="two")
    events = list(events_of(project, one, two, wait=float("inf")))
    assert states(events)["on-t4"] in ("waiting", "skipped")
    assert events[-1].exit is Exit.FAILED


def test_a_job_that_is_forced_is_not_awaited(project, on_t4):
    on_t4(toy.Begin(), OnT4())
    planned = variant(project, toy.Begin(), OnT4())
    assert states(events_of(project, planned, wait=float("inf"), force=frozenset({"on-t4"})))["on-t4"] == "waiting"


def test_the_pauses_grow_up_to_the_longest_and_are_short_again_after_an_arrival(project, on_t4, monkeypatch):
    steps, now, looks, find = (toy.Begin(), OnT4(), AlsoOnT4()), [0.0], [], Lookup.find
    on_t4(toy.Begin())

    class Resting(SharedExecutor):
        def poll(self, timeout):
            now[0] += timeout and 0.25
            return []

    def look(lookup, job, key):
        if job.name in ("on-t4", "also-on-t4"):
            looks.append((job.name, now[0]))
        if looks[-1:] == [("on-t4", 91.0)]:
            on_t4(*steps[:2])
        return find(lookup, job, key)

    monkeypatch.setattr(awaiting, "SHORTEST_PAUSE", 1.0)
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(loop, "time", clock)
    monkeypatch.setattr(awaiting, "time", clock)
    lookup = Lookup(Store(project / "cache"))
    monkeypatch.setattr(lookup, "find", lambda job, key: look(lookup, job, key))
    options = Options(out=project / "build", wait=100.0)
    events = list(run([variant(project, *steps)], lookup, Resting(2), options))
    assert states(events) == {"begin": "cached", "on-t4": "cached", "also-on-t4": "waiting"}
    assert [event.arrival.seconds for event in events if isinstance(event, Ended) and event.arrival] == [91.0]
    times = {job: sorted({time for name, time in looks if name == job}) for job, _ in looks}
    assert times["on-t4"] == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 61.0, 91.0]
    assert LONGEST_PAUSE == 91.0 - 61.0
    assert times["also-on-t4"] == [91.0, 92.0, 94.0, 98.0, 100.0], "and once more at the end"
