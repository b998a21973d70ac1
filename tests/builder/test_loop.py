"""The build loop: built and cached jobs, events, and builds that are interrupted."""

import multiprocessing
import os
import time
from pathlib import Path

import cluster_steps
import lost_objects
import pytest
import toy
from small_builds import SharedExecutor, build, start, states, variant

from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.builder.why import examine
from engine.errors import Exit
from engine.events import Ended, Noticed, Planned, Started
from engine.machine import tools
from engine.step import Device, Hardware, Source
from engine.store.opening import open_store
from engine.store.remote.objects import BLOBS
from engine.store.store import Store

CHAIN = (toy.Begin(), toy.Shout(), toy.Measure(), toy.Close())


def test_a_build_makes_everything_once_and_then_nothing(project):
    first = build(project, variant(project, *CHAIN))
    assert states(first) == dict.fromkeys(("begin", "shout", "measure", "close"), "built")
    assert isinstance(first[0], Planned)
    assert first[-1].exit is Exit.OK
    assert first[-1].state == "built"
    second = build(project, variant(project, *CHAIN))
    assert set(states(second).values()) == {"cached"}
    assert not [event for event in second if isinstance(event, Started)]
    assert second[-1].state == "up to date"


def test_a_changed_option_rebuilds_what_depends_on_it_and_early_cutoff_stops_there(project):
    build(project, variant(project, *CHAIN))
    changed = build(project, variant(project, toy.Begin(text="HELLO"), *CHAIN[1:]))
    # HELLO shouts as hello does: what follows sees the same bytes.
    assert states(changed) == {"begin": "built", "shout": "built", "measure": "cached", "close": "cached"}


def test_a_bound_is_judged_again_without_measuring_again(project):
    strict = variant(project, *CHAIN[:2], toy.Measure(at_most=2), CHAIN[3])
    failed = build(project, strict)
    assert states(failed) == {"begin": "built", "shout": "built", "measure": "failed", "close": "skipped"}
    assert failed[-1].exit is Exit.JUDGED
    mended = build(project, variant(project, *CHAIN))
    assert states(mended) == {"begin": "cached", "shout": "cached", "measure": "cached", "close": "built"}


def test_two_variants_share_the_jobs_that_they_have_in_common(project):
    one = variant(project, *CHAIN[:2], name="one")
    two = variant(project, *CHAIN[:2], name="two")
    events = build(project, one, two)
    ended = [(event.recipe, event.job, event.state) for event in events if isinstance(event, Ended)]
    assert sorted(state for _, job, state in ended if job == "begin") == ["built", "cached"]
    assert sorted(state for _, job, state in ended if job == "shout") == ["built", "cached"]


@pytest.mark.parametrize("how", ["raise", "symlink"])
def test_a_failed_job_leaves_nothing_half_made_and_is_tried_again(project, how):
    events = build(project, variant(project, toy.Misbehave(how=how)))
    assert states(events) == {"misbehave": "failed"}
    assert events[-1].exit is Exit.FAILED
    assert list((project / "cache" / "staging").iterdir()) == []
    assert list((project / "cache" / "artifacts").iterdir()) == []
    assert states(build(project, variant(project, toy.Misbehave(how=how)))) == {"misbehave": "failed"}


def test_a_step_that_rewrites_its_input_fails_and_the_input_is_made_again(project):
    events = build(project, variant(project, toy.Begin(), toy.Spoil()))
    assert states(events) == {"begin": "built", "spoil": "failed"}
    failed = next(event for event in events if isinstance(event, Ended) and event.state == "failed")
    assert failed.error.what == "the input 'text' changed while the step 'spoil' was running"
    assert states(build(project, variant(project, toy.Begin(), toy.Shout()))) == {"begin": "built", "shout": "built"}


def test_why_says_that_an_artifact_is_missing(project):
    build(project, variant(project, toy.Begin()))
    lookup = Lookup(Store(project / "cache"))
    [record] = lookup.store.records()
    file = lookup.store.artifact_path(record.artifact) / "text.txt"
    file.chmod(0o644)
    file.write_text("HELLO")
    [finding] = examine(variant(project, toy.Begin()), lookup)
    assert finding.state == "stale"
    assert [(change.row, change.new) for change in finding.changes] == [("artifact", "missing or damaged")]


def test_a_secret_in_the_environment_does_not_reach_the_log(project, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "a-very-secret-value")
    build(project, variant(project, toy.Misbehave(how="secret")))
    [log] = (project / "cache" / "logs").iterdir()
    assert "token is [redacted]" in log.read_text()


def test_after_a_failure_nothing_new_is_started_unless_asked_to_keep_going(project):
    one = variant(project, toy.Misbehave(how="raise"), name="one")
    two = variant(project, toy.Begin(), toy.Shout(), name="two")
    stopped = build(project, one, two, slots=1)
    assert states(stopped)["shout"] == "skipped"
    going = build(project, one, two, slots=1, keep_going=True)
    assert states(going)["shout"] == "built"
    assert going[-1].exit is Exit.FAILED


def test_a_job_for_absent_hardware_waits_and_what_follows_is_skipped(project, monkeypatch):
    monkeypatch.setattr(toy.Shout, "hardware", lambda _: Hardware(devices=(Device(name="T4", sm=75),), tool="tensorrt"))
    events = build(project, variant(project, *CHAIN))
    assert states(events) == {"begin": "built", "shout": "waiting", "measure": "skipped", "close": "skipped"}
    waiting = next(event for event in events if isinstance(event, Ended) and event.state == "waiting")
    assert waiting.waits_for == "T4 (sm_75) with tensorrt"
    assert events[-1].exit is Exit.WAITING
    assert build(project, variant(project, *CHAIN), allow_waiting=True)[-1].exit is Exit.OK


def test_a_source_is_keyed_by_content_and_not_by_place(project):
    (project / "a.txt").write_text("same")
    (project / "b.txt").write_text("same")
    build(project, variant(project, toy.Read(source=Source(uri=f"file:{project}/a.txt")), toy.Shout()))
    moved = variant(project, toy.Read(source=Source(uri=f"file:{project}/b.txt")), toy.Shout())
    assert set(states(build(project, moved)).values()) == {"cached"}
    (project / "b.txt").write_text("other")
    assert set(states(build(project, moved)).values()) == {"built"}


def test_a_source_that_changes_while_it_is_read_is_not_stored(project):
    source = project / "a.txt"
    source.write_text("before")
    events = []
    running, lookup = start(project, variant(project, toy.Read(source=Source(uri=f"file:{source}"))))
    for event in running:
        events.append(event)
        if isinstance(event, Started):
            source.write_text("after, and longer")
    assert states(events) == {"read": "failed"}
    failed = next(event for event in events if isinstance(event, Ended))
    assert "changed while 'read' was reading it" in failed.error.what
    assert list(lookup.store.records()) == []


def test_a_new_tool_version_rebuilds_only_the_step_that_uses_it(project, monkeypatch):
    monkeypatch.setattr(toy.Shout, "tools", ("onnx",))
    build(project, variant(project, *CHAIN))
    monkeypatch.setattr(tools, "version_of", lambda _: "9.9")
    findings = examine(variant(project, *CHAIN), Lookup(Store(project / "cache")))
    assert {finding.job.name: finding.state for finding in findings} == {
        "begin": "cached", "shout": "stale", "measure": "unknown", "close": "unknown",
    }  # fmt: skip
    [change] = findings[1].changes
    assert change.row == "tools.onnx"
    assert change.new == "9.9"
    events = build(project, variant(project, *CHAIN))
    assert states(events) == {"begin": "cached", "shout": "built", "measure": "cached", "close": "cached"}


def _build_in_process(project):
    events = build(Path(project), variant(Path(project), toy.Slow(seconds=0.5)))
    os._exit(10 if states(events)["slow"] == "built" else 20)


def test_two_builders_make_a_job_once(project):
    context = multiprocessing.get_context("fork")
    builders = [context.Process(target=_build_in_process, args=(str(project),)) for _ in range(3)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(60)
    assert sorted(builder.exitcode for builder in builders) == [10, 20, 20]


def test_records_know_time_memory_and_machine(project):
    began = time.time()
    build(project, variant(project, toy.Slow(seconds=0.3)))
    [record] = Store(project / "cache").records()
    assert record.seconds >= 0.3
    assert record.peak_bytes > 1 << 20
    assert record.machine["os"]
    assert began <= record.made_at <= time.time()


def test_a_job_that_fails_for_several_variants_runs_once_and_is_told_for_each(project):
    one, two = (variant(project, toy.Misbehave(how="raise"), name=name) for name in ("one", "two"))
    events = build(project, one, two, keep_going=True)
    assert [event.recipe for event in events if isinstance(event, Started)] == ["one"]
    assert [(event.recipe, event.state) for event in events if isinstance(event, Ended)] == [
        ("one", "failed"),
        ("two", "failed"),
    ]


def test_the_longest_way_goes_first_once_durations_are_known(project):
    first, quick, slow = (
        variant(project, toy.Slow(seconds=seconds, number=n), name=f"v{n}") for n, seconds in enumerate((0.0, 0.0, 1.0))
    )
    events = build(project, first, quick, slow, slots=1)  # the first one's time is that of its worker's start
    assert [event.recipe for event in events if isinstance(event, Started)] == ["v0", "v1", "v2"]
    again = build(project, quick, slow, slots=1, force=frozenset({"slow"}))
    assert [event.recipe for event in again if isinstance(event, Started)] == ["v2", "v1"]


def test_a_file_system_without_locks_is_told_once_and_built_on_all_the_same(project, monkeypatch):
    monkeypatch.setattr("engine.store.file_lock.are_supported", lambda _: False)
    events = build(project, variant(project, *CHAIN))
    assert ["no working locks" in event.text for event in events if isinstance(event, Noticed)] == [True]
    assert events[-1].exit is Exit.OK


def test_an_environment_variable_counts_where_a_step_names_it_and_is_unseen_elsewhere(project, monkeypatch):
    monkeypatch.setenv("TOY_LETTER", "a")
    asking, deaf = toy.Listen(), toy.Begin(text="t")
    build(project, variant(project, asking, deaf))
    monkeypatch.setenv("TOY_LETTER", "b")
    monkeypatch.setenv("OTHER", "c")
    [finding] = examine(variant(project, asking), Lookup(Store(project / "cache")))
    assert [(change.row, change.old, change.new) for change in finding.changes] == [("env.TOY_LETTER", "a", "b")]
    events = build(project, variant(project, asking, deaf))
    assert states(events) == {"listen": "built", "begin": "cached"}
    listened = next(event for event in events if isinstance(event, Ended) and event.job == "listen")
    assert (listened.path / "heard").read_text() == "b, None"


@pytest.mark.slow
def test_a_lost_input_is_made_once_for_all_jobs_that_read_it(project, tmp_path, monkeypatch):
    """Two jobs can start when the first of them finds out that the remote has lost their common input."""
    (tmp_path / "remote").mkdir()
    remote = f"file://{tmp_path / 'remote'}"
    monkeypatch.setenv("RECIPE_REMOTE", remote)
    monkeypatch.setenv("RECIPE_TRUST", "none")

    def built_with(store, *readers):
        lookup = Lookup(open_store(tmp_path / store, project=project))
        planned = variant(project, cluster_steps.Weights(number=1), *readers)
        return list(run([planned], lookup, SharedExecutor(2), Options(out=tmp_path / f"build-{store}")))

    assert states(built_with("first")) == {"weights": "built"}
    assert lost_objects.change(remote, folder=BLOBS) == 1
    events = built_with("second", cluster_steps.Shuffle(), cluster_steps.ShipOne())
    assert states(events) == {"weights": "built", "shuffle": "built", "ship-one": "built"}
    lost = "the output of 'weights' cannot be brought from the remote: the job runs again"
    texts = [event.text for event in events if isinstance(event, Noticed)]
    assert texts.count(lost) == 1
    assert len([event for event in events if isinstance(event, Started) and event.job == "weights"]) == 1
    assert states(built_with("third")) == {"weights": "cached"}
