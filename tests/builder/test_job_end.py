"""The ends of builds: packages that the recipe no longer vouches for leave `build/`, and replayed failures say so."""

import os
import time

import pytest
import toy
from small_builds import build, variant

from engine.builder.lookup import Lookup
from engine.errors import Exit
from engine.events import Ended, Noticed
from engine.report import json_lines, plain
from engine.step import Device, Hardware, Source
from engine.store.store import Store


def chain(text="hello", at_most=1000):
    return toy.Begin(text=text), toy.Shout(), toy.Measure(at_most=at_most), toy.Deliver()


def notes(events):
    return [event.text for event in events if isinstance(event, Noticed)]


def text(folder):
    return (folder / "model" / "text.txt").read_text()


def test_after_a_missed_bound_the_older_package_leaves_build_and_comes_back_with_the_bound(project):
    package, aside = project / "build" / "r", project / "build" / ".previous" / "r"
    assert notes(build(project, variant(project, *chain()))) == []
    missed = build(project, variant(project, *chain("a longer text", at_most=5)))
    assert missed[-1].exit is Exit.JUDGED
    [note] = notes(missed)
    assert note == f"{package} is from an earlier build, and this build does not vouch for it: moved to {aside}"
    assert not package.exists()
    assert text(aside) == "HELLO"
    assert notes(build(project, variant(project, *chain("a longer text")))) == []
    assert text(package) == "A LONGER TEXT"
    assert sorted(path.name for path in package.parent.iterdir()) == [".r.artifact", "r"]


class Away(toy.Measure):
    """Measures on a GPU that this machine lacks."""

    at_least: int = 3

    def hardware(self):
        return Hardware(devices=(Device(name="Tesla T4", sm=75),), tool="tensorrt")


Away.__name__ = "Measure"


@pytest.mark.parametrize(("state", "code"), [("failed", Exit.FAILED), ("waiting", Exit.OK)])
def test_a_failed_job_or_one_that_waits_leaves_no_older_package_to_be_deployed(project, state, code):
    build(project, variant(project, *chain()))
    begin, shout, measure, deliver = chain("another text")
    missing = toy.Read(source=Source(uri=f"file:{project}/missing.txt"))
    steps = (missing, shout, measure, deliver) if state == "failed" else (begin, shout, Away(), deliver)
    ended = build(project, variant(project, *steps), allow_waiting=True)
    assert (ended[-1].state, ended[-1].exit) == (state, code)
    assert len(notes(ended)) == 1
    assert not (project / "build" / "r").exists()


def test_a_build_with_overrides_that_fails_touches_no_package(project):
    build(project, variant(project, *chain()))
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (project / "build").iterdir())
    missed = build(project, variant(project, *chain("a longer text", at_most=5)), is_what_if=True)
    assert missed[-1].exit is Exit.JUDGED
    assert notes(missed) == []
    assert sorted((path.name, path.stat().st_mtime_ns) for path in (project / "build").iterdir()) == before
    build(project, variant(project, *chain("a longer text")), is_what_if=True)
    assert text(project / "build" / "r") == "A LONGER TEXT"


def test_a_quiet_build_says_that_it_moved_a_package(project, capsys):
    build(project, variant(project, *chain()))
    with plain.PlainReport(many=False, quiet=True) as report:
        for event in build(project, variant(project, *chain(at_most=1))):
            report.on_event(event)
    assert "does not vouch for it: moved to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("at_most", "why"), [(1000, None), (1, "failed in measure: the text has 5 letters, 1 are allowed")]
)
def test_the_note_about_a_build_says_why_it_gave_no_result(project, at_most, why):
    one = variant(project, *chain(at_most=at_most))
    build(project, one)
    unfinished = Lookup(Store(project / "cache")).heads.of(one.subject).unfinished
    assert (unfinished and unfinished.why) == why


def test_a_build_that_ends_early_has_no_results_of_later_jobs_of_another_build(project):
    def results(one):
        build(project, one)
        return set(Lookup(Store(project / "cache")).heads.of(one.subject).results.jobs)

    whole = {"begin", "shout", "measure", "deliver"}
    assert results(variant(project, *chain())) == whole
    assert results(variant(project, *chain()[:2])) == whole
    assert results(variant(project, *chain("another text")[:2])) == {"begin", "shout"}
    assert results(variant(project, *chain("another text"))) == whole


def test_a_folder_that_no_build_made_is_left_alone(project):
    (project / "build" / "r").mkdir(parents=True)
    (project / "build" / "r" / "mine.txt").write_text("mine")
    missed = build(project, variant(project, *chain(at_most=1)))
    assert notes(missed) == []
    assert (project / "build" / "r" / "mine.txt").read_text() == "mine"


def test_a_recipe_whose_jobs_were_not_reached_keeps_its_package(project):
    good = chain("good")
    build(project, variant(project, *good, name="good"))
    stopped = build(
        project, variant(project, *chain("bad", at_most=1), name="bad"), variant(project, *good, name="good"), slots=1
    )
    assert stopped[-1].exit is Exit.JUDGED
    assert text(project / "build" / "good") == "GOOD"


def refuse(*_):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("blocked", ["a file", "an older package", "a dangling link", "the system"])
def test_what_keeps_a_package_from_being_moved_is_named_and_loses_nothing(project, blocked):
    build(project, variant(project, *chain()))
    previous = project / "build" / ".previous"
    with pytest.MonkeyPatch.context() as during:
        match blocked:
            case "a file":
                previous.write_text("mine")
            case "an older package":
                (previous / "r").mkdir(parents=True)
                (previous / "r" / "old.txt").write_text("old")
            case "a dangling link":
                previous.symlink_to("gone")
            case "the system":
                during.setattr(os, "rename", refuse)
        [note] = notes(build(project, variant(project, *chain(at_most=1))))
    assert "does not vouch for it" in note
    moved = blocked == "an older package"
    assert ("cannot be moved away" in note) == (not moved)
    assert blocked != "the system" or "cannot be moved away: Permission denied" in note
    assert text(previous / "r" if moved else project / "build" / "r") == "HELLO"
    assert notes(build(project, variant(project, *chain()))) == []
    assert text(project / "build" / "r") == "HELLO"


def measured(events):
    return next(event for event in events if isinstance(event, Ended) and event.job == "measure")


def test_a_failure_from_a_stored_report_says_when_it_was_measured_and_how_to_measure_again(project):
    at_once = measured(build(project, variant(project, *chain(at_most=1))))
    assert "replayed" not in str(at_once.error)
    assert at_once.measured_at is None
    before = time.time()
    replayed = measured(build(project, variant(project, *chain(at_most=1))))
    assert replayed.measured_at <= before
    moment = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(replayed.measured_at))
    assert f"replayed: measured at {moment}" in str(replayed.error)
    assert "--force measure" in replayed.error.hint
    assert replayed.error.exit is Exit.JUDGED
    assert "replayed" in "\n".join(plain.lines(replayed, many=False))
    assert f'"measured_at": {replayed.measured_at}' in json_lines.line(replayed)
    again = measured(build(project, variant(project, *chain(at_most=1)), force=frozenset({"measure"})))
    assert "replayed" not in str(again.error)


def test_a_job_that_ran_in_this_build_for_another_recipe_is_not_called_replayed(project):
    steps = chain(at_most=1)
    events = build(project, variant(project, *steps, name="one"), variant(project, *steps, name="two"), keep_going=True)
    errors = [str(event.error) for event in events if isinstance(event, Ended) and event.error is not None]
    assert len(errors) == 2
    assert not any("replayed" in error for error in errors)


def test_an_interrupted_build_leaves_the_package_where_it_is(project, monkeypatch):
    build(project, variant(project, *chain()))
    monkeypatch.setattr(Lookup, "find", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    events = build(project, variant(project, *chain(at_most=1)))
    assert events[-1].exit is Exit.INTERRUPTED
    assert text(project / "build" / "r") == "HELLO"
