"""What waits for other hardware: by machine, with measured times only, and the command to run there."""

import shlex
from dataclasses import replace
from pathlib import Path

import toy
from hardware_steps import L4, T4, OnL4, OnT4, WithTensorRT
from small_builds import build, variant

from engine.builder.lookup import Lookup
from engine.builder.selection import select
from engine.builder.waiting import by_machine
from engine.builder.why import examine
from engine.store.heads import Heads
from engine.store.store import Store


def waiting(project, *variants, **reading):
    lookup = Lookup(Store(project / "cache"))
    findings = [finding for each in variants for finding in examine(each, lookup)]
    return by_machine(variants, findings, lookup, select(project / "r.yaml", **reading))


def names(machine):
    return [(job.finding.job.recipe, job.finding.job.name) for job in machine.jobs]


def note_seconds(project, planned, **seconds):
    heads = Heads(Store(project / "cache").notes)
    notes = {name: replace(heads.of(planned.subject).jobs["begin"], key=None, seconds=each)
             for name, each in seconds.items()}  # fmt: skip
    heads.keep(planned.subject, notes)
    heads.save()


def test_jobs_are_listed_by_machine_also_where_their_inputs_are_not_built_yet(project):
    planned = variant(project, toy.Begin(), OnT4(), OnL4())
    expected = [(T4, [("r", "on-t4")]), (L4, [("r", "on-l4")])]
    assert [(each.hardware, names(each)) for each in waiting(project, planned)] == expected
    build(project, planned)
    assert [(each.hardware, names(each)) for each in waiting(project, planned)] == expected


def test_a_machine_for_jobs_with_and_without_libraries_is_one_machine_with_them(project):
    """As for ONNX Runtime's CUDA and TensorRT providers: pip installs TensorRT on either machine."""
    [machine] = waiting(project, variant(project, toy.Begin(), WithTensorRT(), OnT4()))
    assert machine.hardware == WithTensorRT().hardware()
    assert names(machine) == [("r", "on-t4"), ("r", "with-tensor-rt")]
    assert "--allow-waiting" not in machine.command


def test_what_this_machine_can_build_waits_for_nothing(project):
    assert waiting(project, variant(project, toy.Begin(), toy.Shout())) == ()


def test_a_result_of_another_machine_waits_no_more(project, monkeypatch):
    planned = variant(project, toy.Begin(), OnT4())
    with monkeypatch.context() as there:
        there.setattr("engine.builder.lookup.Lookup.waits_for", lambda *_: None)
        there.setattr("engine.builder.facts.of", lambda *_: None)
        assert build(project, planned)[-1].state == "built"
    assert waiting(project, planned) == ()


def test_times_are_those_of_earlier_builds_and_none_is_invented(project):
    planned = variant(project, toy.Begin(), OnT4(), OnL4())
    build(project, planned)
    assert [each.seconds for each in waiting(project, planned)] == [None, None]
    note_seconds(project, planned, **{"on-t4": 90.0})
    assert [each.seconds for each in waiting(project, planned)] == [90.0, None]


def test_the_same_work_of_two_variants_counts_once(project):
    one, two = (variant(project, toy.Begin(), OnT4(), name=name) for name in ("one", "two"))
    build(project, one, two)
    note_seconds(project, one, **{"on-t4": 60.0})
    [machine] = waiting(project, one, two)
    assert names(machine) == [("one", "on-t4"), ("two", "on-t4")]
    assert machine.seconds == 60.0


def test_the_command_builds_the_same_selection_and_is_quoted_for_a_shell(project):
    planned = variant(project, toy.Begin(), OnT4())
    [machine] = waiting(project, planned, set=["name=a b"], to=["on-t4"], cache=Path("my cache"), locked=True)
    words = ["recipe", "build", str(project / "r.yaml"), "--set", "name=a b", "--to", "on-t4", "--cache", "my cache",
             "--locked"]  # fmt: skip
    assert shlex.split(machine.command) == words


def test_a_machine_that_leaves_work_of_a_recipe_for_another_may_leave_it(project):
    both = variant(project, toy.Begin(), OnT4(), OnL4())
    assert all("--allow-waiting" in each.command for each in waiting(project, both))
    assert "--allow-waiting" not in waiting(project, variant(project, toy.Begin(), OnT4()))[0].command
