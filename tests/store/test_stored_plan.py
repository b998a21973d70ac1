"""Stored plans: which variants read a changed file, and which outputs no variant has any more."""

import pytest

from engine import snapshot
from engine.snapshot import ChangedFiles
from engine.store.stored_plan import StoredPlan, path_beside

TOKEN = b"t" * snapshot.TOKEN_BYTES


def variant(inputs=(), outputs=()):
    return {"inputs": [str(each) for each in inputs], "outputs": [str(each) for each in outputs]}


def plan_of(*variants, fixed=()):
    return StoredPlan.new(list(variants), fixed=set(fixed), code={}, machine={}, tables={}, abstract=[], packages={})


@pytest.fixture
def sources(tmp_path):
    names = [str(tmp_path / name) for name in ("one", "two", "both", "code")]
    for name in names:
        with open(name, "w") as file:
            file.write(name)
    return names


def test_a_changed_source_concerns_the_variants_that_read_it(sources):
    one, two, both, code = sources
    plan = plan_of(variant([one, both, code]), variant([two, both]), variant([]), fixed=[code])
    assert plan.reading([one]) == [0]
    assert plan.reading([two, both]) == [0, 1]
    assert plan.reading([one, code]) is None  # a source that is code, too, may change the plan
    assert plan.reading([one, "/elsewhere"]) is None


def test_a_source_that_is_no_file_any_more_may_change_the_plan(sources, tmp_path):
    plan = plan_of(variant(sources))
    (tmp_path / "one").unlink()
    assert plan.reading(sources[:1]) is None
    (tmp_path / "one").mkdir()
    assert plan.reading(sources[:1]) is None


def test_an_output_is_dropped_only_if_no_other_variant_had_it():
    plan = plan_of(variant(outputs=["/a", "/b", "/shared"]), variant(outputs=["/c", "/shared"]))
    assert plan.replace(0, variant(outputs=["/a", "/c"])) == {"/b"}
    plan.share(["/c"])
    assert plan.replace(1, variant(outputs=["/d"])) == set()
    assert plan.variant(1) == variant(outputs=["/d"])


@pytest.fixture
def changes(tmp_path):
    for folder in ("snapshots", "plans"):
        (tmp_path / folder).mkdir()
    return ChangedFiles(str(tmp_path / "snapshots" / "x"), {"token": TOKEN}, [], 0.0)


def write(changes, token=TOKEN):
    place = path_beside(changes.path)
    with open(place, "wb") as file:
        file.write(plan_of(variant(["/a"])).sealed(place, token))
    return place


def test_a_plan_is_read_only_with_its_own_snapshot(changes):
    assert StoredPlan.of(changes) is None
    write(changes)
    assert StoredPlan.of(changes).size == 1
    write(changes, token=b"u" * snapshot.TOKEN_BYTES)
    assert StoredPlan.of(changes) is None


def test_a_damaged_plan_counts_as_missing(changes):
    place = write(changes)
    with open(place, "r+b") as file:
        file.seek(-1, 2)
        file.write(b"?")
    assert StoredPlan.of(changes) is None
