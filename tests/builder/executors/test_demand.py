"""What a job is expected to take of its machine."""

from types import SimpleNamespace

import pytest
from cluster_steps import Allocate
from hypothesis import given
from hypothesis import strategies as st
from small_builds import build, project_in, variant

from engine.builder.executors.executor import demand_of
from engine.builder.lookup import Lookup
from engine.builder.states import States
from engine.store.store import Store

GIB = 1 << 30


def job(memory=0, threads=1):
    return SimpleNamespace(traits=SimpleNamespace(threads=threads, memory=memory, exclusive=False))


def an_input(size):
    return SimpleNamespace(files={"model.onnx": (size, "d")})


def test_a_measured_peak_counts_more_than_a_declared_one_and_that_more_than_an_estimate():
    inputs = {"model": an_input(GIB)}
    assert demand_of(job(2 * GIB), inputs, 7 * GIB).memory == 7 * GIB
    assert demand_of(job(2 * GIB), inputs, None).memory == 2 * GIB
    assert demand_of(job(), inputs, None).memory == 3.5 * GIB
    assert demand_of(job(), {}, None).memory == GIB // 2
    assert demand_of(job(threads=4), {}, None).threads == 4


@given(st.integers(1, 1 << 45))
def test_what_is_expected_is_rounded_up_by_at_most_a_quarter(size):
    memory = demand_of(job(), {}, size).memory
    assert size <= memory <= size * 1.25 + 1


def test_similar_jobs_have_one_demand():
    every = {demand_of(job(), {}, GIB + number * (10 << 20)) for number in range(20)}
    assert len(every) == 1 + 1  # a GiB itself is rounded to nothing


@pytest.mark.slow
def test_the_next_build_expects_what_the_last_one_has_measured(tmp_path):
    allocate = variant(project_in(tmp_path), Allocate())
    lookup = Lookup(Store(tmp_path / "cache"))
    [new] = States([allocate], {"r": lookup.heads.of(allocate.subject)}).tickets
    build(tmp_path, allocate)
    lookup = Lookup(Store(tmp_path / "cache"))
    [known] = States([allocate], {"r": lookup.heads.of(allocate.subject)}).tickets
    assert new.note is None
    assert 200 << 20 < known.note.memory < GIB
