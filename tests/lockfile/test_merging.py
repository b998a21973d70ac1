"""Merging locks: entries that a second machine adds, and entries that stay."""

from dataclasses import replace

import pytest
from small_lock import AVX2, AVX512, FETCH, LOCK, A, C

from engine.lockfile.content import LockedJob, LockedOutput, MachineSection
from engine.lockfile.merging import merged


def variant(lock, **jobs):
    old = lock.variants["tiny"]
    return {"tiny": replace(old, jobs={**old.jobs, **jobs})}


def on(machine, **changes):
    return replace(LOCK, machines=(MachineSection(machine, {("tiny", "validate"): LockedOutput(A, A)}),), **changes)


def test_a_second_kind_of_machine_adds_its_section_and_keeps_the_other():
    both = merged(LOCK, on(AVX512), elsewhere=())
    assert both.machines == (*LOCK.machines, *on(AVX512).machines)
    assert merged(on(AVX512), LOCK, elsewhere=()) == both
    assert merged(both, LOCK, elsewhere=()) == both


def test_the_same_kind_of_machine_replaces_its_section():
    assert merged(LOCK, on(AVX2), elsewhere=()) == on(AVX2)


@pytest.mark.parametrize(
    "changes",
    [
        {"sources": {**LOCK.sources, "model": C}},
        {"tools": {**LOCK.tools, "onnx": "2"}},
        {"steps": {**LOCK.steps, "validate": C}},
        {"variants": variant(LOCK, validate=LockedJob())},
        {"variants": variant(LOCK, more=LockedJob())},
        {"variants": variant(LOCK, fetch=replace(FETCH, output=LockedOutput(A, C)))},
        {"variants": {}},
    ],
    ids=["source", "tool", "code", "wiring", "job", "artifact", "variant"],
)
def test_a_section_of_another_machine_goes_when_its_keys_are_no_longer_true(changes):
    new = on(AVX512, **changes)
    assert merged(LOCK, new, elsewhere=()) == new


def test_a_new_bound_leaves_the_sections_of_other_machines():
    new = on(AVX512, variants={"tiny": replace(LOCK.variants["tiny"], recipe={"name": "tiny"})})
    assert len(merged(LOCK, new, elsewhere=()).machines) == 2


def test_a_new_variant_leaves_the_sections_of_the_others():
    new = on(AVX512, variants={**LOCK.variants, "big": LOCK.variants["tiny"]}, steps={**LOCK.steps, "more": A})
    assert len(merged(LOCK, new, elsewhere=()).machines) == 2


def test_tools_of_jobs_that_wait_here_keep_their_locked_version():
    new = replace(LOCK, tools={"numpy": "2.10"})
    assert merged(LOCK, new, elsewhere={"onnx", "tensorrt"}).tools == LOCK.tools
    assert merged(LOCK, new, elsewhere=()).tools == new.tools
