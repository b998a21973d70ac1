"""Differences from a lock: rows with both values, without rows of other machines; and what merging keeps of it."""

from dataclasses import replace

import pytest
from small_lock import AVX2, AVX512, FETCH, LOCK, A, B, C, D

from engine.errors import Exit, LockError
from engine.lockfile.content import Lock, LockedJob, LockedOutput, MachineSection
from engine.lockfile.differences import differences, merged, refuse
from engine.lockfile.text import dump, parse
from engine.text.places import Text

TINY = LOCK.variants["tiny"]
VALIDATE = TINY.jobs["validate"]
BOUND = "validate.cosine.at_least"


def with_job(**jobs):
    return replace(LOCK, variants={"tiny": replace(TINY, jobs={**TINY.jobs, **jobs})})


def with_recipe(**fields):
    return replace(LOCK, variants={"tiny": replace(TINY, recipe={"name": "tiny", **fields})})


def rows(locked, here, *, partly=False):
    return [str(difference) for difference in differences(locked, here, partly=partly)]


def refuse_whole(locked, here):
    refuse(locked, here, partly=False, overridden=False, lock="r.lock", recipe="r.yaml")


def test_nothing_differs_from_itself():
    assert rows(LOCK, LOCK) == []
    refuse_whole(LOCK, LOCK)


@pytest.mark.parametrize(
    ("here", "line"),
    [
        (replace(LOCK, sources={**LOCK.sources, "model": C}), f"model: locked {A}, here {C}"),
        (replace(LOCK, sources={**LOCK.sources, "new": C}), f"new: not locked, here {C}"),
        (replace(LOCK, tools={**LOCK.tools, "onnx": "1.24.0"}), "tools.onnx: locked 1.23.2, here 1.24.0"),
        (replace(LOCK, tools={"numpy": "2.10"}), "tools.onnx: locked 1.23.2, not here"),
        (replace(LOCK, steps={**LOCK.steps, "fetch": D}), f"code of fetch: locked {A}, here {D}"),
        (replace(LOCK, variants={}), "variant tiny: locked, not here"),
        (replace(LOCK, variants={**LOCK.variants, "big": TINY}), "variant big: not locked, here"),
        (with_job(fuse=LockedJob()), "job fuse of tiny: not locked, here"),
        (with_job(fetch=replace(FETCH, options={})), "options.weights of fetch in tiny: locked safetensors, not here"),
        (with_job(validate=replace(VALIDATE, gates=())), "gates of validate in tiny: locked bench, other, not here"),
        (
            with_job(validate=replace(VALIDATE, needs={"compiled": "x"})),
            "needs.compiled of validate in tiny: locked fetch, here x",
        ),
        (with_recipe(**{BOUND: "0.4"}), f"recipe.{BOUND} of tiny: locked 0.5, here 0.4"),
        (with_recipe(), f"recipe.{BOUND} of tiny: locked 0.5, here the default"),
    ],
    ids=lambda value: value.split(":")[0] if isinstance(value, str) else "",
)
def test_every_row_that_differs_is_named_with_both_values(here, line):
    assert rows(LOCK, here) == [line]
    with pytest.raises(LockError) as caught:
        refuse_whole(LOCK, here)
    assert line in caught.value.facts
    assert "1 row differs" in caught.value.what
    assert "recipe lock r.yaml" in caught.value.hint
    assert caught.value.exit is Exit.USAGE


def test_keys_and_artifacts_are_compared_where_everything_else_is_equal():
    here = with_job(fetch=replace(FETCH, output=LockedOutput(A, C)))
    assert rows(LOCK, here) == [f"artifact of fetch in tiny: locked {B}, here {C}"]
    here = with_job(fetch=replace(FETCH, output=LockedOutput(C, C)))
    assert rows(LOCK, here) == [f"key of fetch in tiny: locked {A}, here {C}"]
    other = replace(here, tools={**LOCK.tools, "onnx": "2"})
    assert rows(LOCK, other) == ["tools.onnx: locked 1.23.2, here 2"]


def test_what_is_not_known_on_one_side_is_no_difference():
    here = with_job(fetch=replace(FETCH, output=None))
    assert rows(LOCK, here) == rows(here, LOCK) == []


def test_a_section_is_compared_only_where_its_facts_hold():
    there = replace(LOCK, machines=(MachineSection(AVX512, {("tiny", "validate"): LockedOutput(A, A)}),))
    here = replace(LOCK, machines=(MachineSection(AVX2, {("tiny", "validate"): LockedOutput(C, A)}),))
    assert rows(there, here) == []
    assert rows(LOCK, here) == [f"artifact of validate in tiny: locked {D}, here {A}"]


def test_what_the_command_line_leaves_out_is_no_difference():
    only_fetch = {"tiny": replace(TINY, jobs={"fetch": TINY.jobs["fetch"]})}
    here = Lock(sources={"model": A}, tools={}, steps={"fetch": A}, variants=only_fetch)
    assert rows(LOCK, here, partly=True) == []
    assert len(rows(LOCK, here)) == 5
    assert rows(LOCK, replace(here, steps={"fetch": B}), partly=True) == [f"code of fetch: locked {A}, here {B}"]


def test_an_environment_variable_that_a_key_has_is_compared():
    set_ = replace(LOCK, variables={"NVIDIA_TF32_OVERRIDE": "0"})
    assert parse(Text("r.lock", dump(set_))) == set_
    assert rows(LOCK, set_) == ["env.NVIDIA_TF32_OVERRIDE: not locked, here 0"]
    assert rows(set_, LOCK) == ["env.NVIDIA_TF32_OVERRIDE: locked 0, not here"]
    assert merged(set_, LOCK) == LOCK


def test_very_many_differences_are_counted():
    here = replace(LOCK, tools={f"t{n}": "1" for n in range(200)})
    with pytest.raises(LockError) as caught:
        refuse_whole(LOCK, here)
    assert "202 rows differ" in caught.value.what
    assert caught.value.facts[-1] == "and 142 more"


def on(machine, **changes):
    return replace(LOCK, machines=(MachineSection(machine, {("tiny", "validate"): LockedOutput(A, A)}),), **changes)


def test_a_second_kind_of_machine_adds_its_section_and_keeps_the_other():
    both = merged(LOCK, on(AVX512))
    assert both.machines == (*LOCK.machines, *on(AVX512).machines)
    assert merged(on(AVX512), LOCK) == both
    assert merged(both, LOCK) == both


def test_the_same_kind_of_machine_replaces_its_section():
    assert merged(LOCK, on(AVX2)) == on(AVX2)


@pytest.mark.parametrize(
    "changes",
    [
        {"sources": {**LOCK.sources, "model": C}},
        {"tools": {**LOCK.tools, "onnx": "2"}},
        {"steps": {**LOCK.steps, "validate": C}},
        {"variants": with_job(validate=LockedJob()).variants},
        {"variants": with_job(more=LockedJob()).variants},
        {"variants": with_job(fetch=replace(FETCH, output=LockedOutput(A, C))).variants},
        {"variants": {}},
    ],
    ids=["source", "tool", "code", "wiring", "job", "artifact", "variant"],
)
def test_a_section_of_another_machine_goes_when_its_keys_are_no_longer_true(changes):
    new = on(AVX512, **changes)
    assert merged(LOCK, new) == new


def test_a_new_bound_or_variant_leaves_the_sections_of_other_machines():
    for changes in (
        {"variants": with_recipe().variants},
        {"variants": {**LOCK.variants, "big": TINY}, "steps": {**LOCK.steps, "more": A}},
    ):
        assert len(merged(LOCK, on(AVX512, **changes)).machines) == 2, changes
