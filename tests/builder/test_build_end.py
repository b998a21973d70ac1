"""What a build notes in the history of its variants."""

from dataclasses import replace

import pytest
import toy
from small_builds import build, states, variant

from engine.builder.build_end import announce
from engine.errors import Exit
from engine.events import Finished, Moved, Noticed
from engine.key import Change
from engine.store import file_lock, history
from engine.store.store import Store


def past(project, one):
    return history.of(Store(project / "cache").notes, one.subject)


def runs(build):
    return [(run.job, run.state) for run in build.runs]


def test_a_first_build_notes_each_job_and_a_second_one_nothing(project):
    one = variant(project, toy.Begin(), toy.Shout())
    build(project, one)
    build(project, one)
    [first] = past(project, one)
    assert (first.state, first.name) == ("built", "r")
    assert runs(first) == [("begin", "built"), ("shout", "built")]
    assert set(first.jobs) == {"begin", "shout"}
    assert [run.changes for run in first.runs] == [(), ()]


def test_a_job_that_runs_again_is_noted_with_its_own_rows_and_followers_without(project):
    build(project, variant(project, toy.Begin(), toy.Shout()))
    one = variant(project, toy.Begin(text="more"), toy.Shout())
    build(project, one)
    last = past(project, one)[-1]
    assert [(run.job, run.changes) for run in last.runs] == [
        ("begin", (Change("options.text", "hello", "more"),)),
        ("shout", ()),
    ]


def test_a_build_that_goes_back_to_stored_results_is_noted_without_runs(project):
    before, after = (variant(project, toy.Begin(text=text), toy.Shout()) for text in ("one", "two"))
    for each in (before, after, before):
        build(project, each)
    builds = past(project, before)
    assert [len(each.runs) for each in builds] == [2, 2, 0]
    assert builds[2].jobs == builds[0].jobs


def test_a_failure_is_noted_once_with_its_error(project):
    one = variant(project, toy.Begin(), toy.Shout(), toy.Measure(at_most=2))
    for _ in range(2):
        assert states(build(project, one))["measure"] == "failed"
    [only] = past(project, one)
    assert only.state == "failed"
    assert only.runs[-1].error == "the text has 5 letters, 2 are allowed"


def test_each_variant_has_a_history_of_its_own(project):
    one, two = (variant(project, toy.Begin(text=name), name=name) for name in ("one", "two"))
    build(project, one, two)
    build(project, variant(project, toy.Begin(text="other"), name="one"), two)
    assert [len(past(project, each)) for each in (one, two)] == [2, 1]


def test_the_error_of_a_failed_job_is_noted_without_secrets(project, monkeypatch):
    monkeypatch.setenv("TOY_TOKEN", "open-sesame-1")
    monkeypatch.setattr(toy.Misbehave, "variables", ("TOY_TOKEN",))
    one = variant(project, toy.Misbehave(how="secret error"))
    build(project, one)
    [failed] = past(project, one)
    assert failed.runs[0].error == "no [redacted]"


MOVED = Moved("in", "there", ("export",), 1, 2)
LAST = Finished("built", 1.0, Exit.OK, {})


class FakeTier:
    """A fake remote that reports at once."""

    def watch(self, on_event):
        on_event(MOVED)


def loop(*events):
    for tell in file_lock._listeners:
        tell("waiting for a lock")
    yield from events


def whole(last):
    return replace(last, seconds=2.0)


def test_what_moves_and_waits_for_locks_are_events_and_the_last_one_is_whole(tmp_path):
    store, events = Store(tmp_path / "cache"), []
    store.tier = FakeTier()
    last = announce(loop(Noticed("one"), LAST), store, events.append, whole)
    assert events == [MOVED, Noticed("waiting for a lock"), Noticed("one"), whole(LAST)]
    assert last == whole(LAST)


def test_a_build_without_a_last_event_is_a_fault_of_this_program(tmp_path):
    with pytest.raises(AssertionError, match="without its last event"):
        announce(loop(Noticed("one")), Store(tmp_path / "cache"), [].append, whole)


def test_a_loop_ends_at_once_where_its_reader_fails_though_the_error_is_kept(tmp_path):
    ends = []

    def endless():
        try:
            while True:
                yield Noticed("one")
        finally:
            ends.append("closed")

    def fail(_):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError) as kept:
        announce(endless(), Store(tmp_path / "cache"), fail, whole)
    assert (ends, kept.type) == (["closed"], BrokenPipeError)
