"""Who is to blame for a damaged input: a step only if the input changed while the step was running."""

import pytest
import toy
from small_builds import build, project_in, states, variant

from engine.builder.attempt import Attempt
from engine.events import Ended, Noticed
from engine.store.store import Store


@pytest.fixture
def project(tmp_path):
    return project_in(tmp_path)


@pytest.fixture
def harm(monkeypatch):
    """Do something to the store right before a job of this name starts, once."""

    def lay(name, act):
        prepare = Attempt.prepare.__func__
        left = [act]

        def trapped(cls, order, mounts):
            if order.job.name == name and left:
                left.pop()(order.lookup.store)
            return prepare(cls, order, mounts)

        monkeypatch.setattr(Attempt, "prepare", classmethod(trapped))

    return lay


def stored_text(store):
    [record] = [record for record in store.records() if record.job == "begin"]
    return store.artifact_path(record.artifact) / "text.txt"


def overwrite(store):
    """Damage all names of the file at once: the pool's file is the same."""
    path = stored_text(store)
    path.chmod(0o644)
    path.write_text("spoilt")


def error_of(events):
    return next(event.error for event in events if isinstance(event, Ended) and event.state == "failed")


def test_a_file_that_was_damaged_before_the_step_began_is_damage_of_the_store(project, harm):
    harm("shout", overwrite)
    events = build(project, variant(project, toy.Begin(), toy.Shout()))
    error = error_of(events)
    assert error.what.startswith("the store was damaged: the input 'text'")
    assert "it is in quarantine/, and 'begin' runs again in the next build" in error.facts
    again = build(project, variant(project, toy.Begin(), toy.Shout()))
    assert states(again) == {"begin": "built", "shout": "built"}


def test_a_file_that_the_pool_has_whole_is_mended_and_the_job_repeated_in_the_same_build(project, harm):
    def exchange(store):
        path = stored_text(store)
        path.unlink()
        path.write_text("spoilt")

    harm("shout", exchange)
    events = build(project, variant(project, toy.Begin(), toy.Shout()))
    assert states(events) == {"begin": "built", "shout": "built"}
    [note] = [event.text for event in events if isinstance(event, Noticed)]
    assert "the store was damaged" in note
    assert "'shout' runs again" in note
    store = Store(project / "cache")
    [record] = [record for record in store.records() if record.job == "shout"]
    assert (store.artifact_path(record.artifact) / "text.txt").read_text() == "HELLO"


def test_a_step_that_fails_because_its_input_is_gone_is_not_called_the_cause(project, harm):
    harm("shout", lambda store: stored_text(store).unlink())
    events = build(project, variant(project, toy.Begin(), toy.Shout()))
    assert states(events) == {"begin": "built", "shout": "built"}
