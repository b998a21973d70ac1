"""The notes of last builds, as written to disk and as read back."""

from types import SimpleNamespace

import pytest

from engine.digest import Digest
from engine.recipe.load import load
from engine.store import heads
from engine.store.heads import NEVER, Head, Heads, JobNote, Unfinished, subject_of
from engine.store.store import Store

ONE, TWO = (Digest(digit * 32) for digit in "12")
RECIPE = "name: two\nmodel: {source: hf:a/b}\ntarget: {device: cpu}\n"
MATRIX = "matrix: {precision: [fp32, int8]}\n"
ON_DISK = {
    "name": "one",
    "recipe": {"recipe.name": "one"},
    "jobs": {
        "fetch": {"run": ONE, "key": ONE, "needs": {}, "seconds": 1.5},
        "export": {"run": TWO, "key": ONE, "needs": {"checkpoint": "fetch"}, "seconds": 2, "gone": True},
        "fuse": {"run": TWO},
    },
    "used": 17,
}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.fixture
def recipe(tmp_path):
    """A recipe with a note of its own."""
    return loaded_from(tmp_path)


def keep(store, recipe, jobs, unfinished=None):
    """Keep the notes of a build, and write them."""
    notes = Heads(store.notes)
    notes.keep(recipe, jobs, unfinished)
    notes.save()
    return notes


def variants_from(folder, name="one.yaml", recipe=RECIPE):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text("")
    (folder / name).write_text(recipe)
    return [subject_of(loaded) for loaded in load(folder / name, must_exist=False)]


def loaded_from(*words, **options):
    [subject] = variants_from(*words, **options)
    return subject


def build_once(store, recipe):
    keep(store, recipe, {"fetch": JobNote(run=ONE, key=ONE)})


def test_after_failed_builds_the_results_are_those_of_the_last_that_passed(store, recipe):
    fetched, exported = JobNote(run=ONE, key=ONE), JobNote(run=TWO, key=TWO)
    Heads(store.notes).keep(recipe, {})
    keep(store, recipe, {"fetch": fetched, "export": fetched})
    for why in ("failed in fuse: no", "stopped before export"):
        unfinished = Unfinished(why, keeps_earlier=True, jobs={"export": TWO})
        notes = keep(store, recipe, {"export": exported}, unfinished)
    head = Heads(store.notes).of(recipe)
    assert head.failed.why == "stopped before export"
    assert head.results.jobs == {"fetch": ONE, "export": ONE}
    assert head.newest == {"fetch": ONE, "export": TWO}
    assert set(heads.uses(store)) == {(ONE, head.used), (TWO, head.used)}
    notes.keep(recipe, {"export": exported})
    assert notes.of(recipe).results.jobs == {"fetch": ONE, "export": TWO}


def test_a_build_that_waits_has_its_own_results_and_a_failed_first_build_too(store, recipe):
    notes = Heads(store.notes)
    failed = Unfinished("failed", keeps_earlier=True, jobs={"fetch": ONE})
    notes.keep(recipe, {"fetch": JobNote(run=ONE, key=ONE)}, failed)
    assert notes.of(recipe).results.jobs == {"fetch": ONE}
    notes.keep(recipe, {"fetch": JobNote(run=TWO, key=TWO)})
    notes.keep(recipe, {}, Unfinished("waits for Tesla T4", keeps_earlier=False, jobs={"fetch": TWO}))
    assert notes.of(recipe).failed is None
    assert notes.of(recipe).results.jobs == {"fetch": TWO}


def note_of(store, recipe):
    return Heads(store.notes).path(recipe).stem


def test_what_lies_on_disk_reads_and_is_written_as_it_was():
    head = Head.from_json(ON_DISK)
    assert head.jobs["fuse"] == JobNote(run=TWO)
    assert head.jobs["export"].gone
    assert head.to_json() == ON_DISK


@pytest.mark.parametrize(
    "other",
    [
        {**ON_DISK, "later": 1},
        {**ON_DISK, "jobs": {"fetch": {"key": ONE}}},
        {**ON_DISK, "jobs": {"fetch": {"run": ONE, "seconds": "long"}}},
        {name: value for name, value in ON_DISK.items() if name != "jobs"},
        [ON_DISK],
        "one",
    ],
)
def test_a_note_of_another_form_is_as_if_it_were_not_there_and_stays(store, recipe, other):
    name = note_of(store, recipe)
    store.notes.keep(heads.KIND, name, {recipe.variant: other, "beside": ON_DISK, "strange": other})
    last = Heads(store.notes)
    assert last.of(recipe) == NEVER
    assert list(heads.uses(store)) == [(ONE, 17)]
    assert heads.runs(store) == {ONE, TWO}
    last.keep(recipe, {"fetch": JobNote(run=ONE)})
    last.save()
    after = store.notes.get(heads.KIND, name)
    assert after["beside"] == ON_DISK
    assert after["strange"] == other
    assert Heads(store.notes).of(recipe).jobs == {"fetch": JobNote(run=ONE)}


def test_a_note_without_a_time_was_last_used_never(store):
    store.notes.keep(heads.KIND, "n", {"": {name: value for name, value in ON_DISK.items() if name != "used"}})
    assert {used for _, used in heads.uses(store)} == {0.0}


def test_jobs_that_a_build_did_not_get_to_keep_their_note(store, recipe):
    keep(store, recipe, {"fetch": JobNote(run=ONE, key=ONE), "export": JobNote(run=ONE)})
    keep(store, recipe, {"export": JobNote(run=TWO)})
    assert Heads(store.notes).of(recipe).jobs == {"fetch": JobNote(run=ONE, key=ONE), "export": JobNote(run=TWO)}


def test_what_is_collected_is_forgotten_and_the_rest_of_its_note_stays(store):
    store.notes.keep(heads.KIND, "n", {"": ON_DISK})
    heads.forget(store, {ONE})
    jobs = store.notes.get(heads.KIND, "n")[""]["jobs"]
    assert jobs["fetch"] == {"run": ONE, "needs": {}, "seconds": 1.5}
    assert jobs["fuse"] == ON_DISK["jobs"]["fuse"]


def test_a_lost_record_is_told_once(store):
    store.notes.keep(heads.KIND, "n", {"": {**ON_DISK, "jobs": {"fetch": ON_DISK["jobs"]["fetch"]}}})
    assert heads.without_record(store, ()) == [ONE]
    assert heads.without_record(store, ()) == []
    assert store.notes.get(heads.KIND, "n")[""]["jobs"]["fetch"]["gone"] is True


def test_a_job_that_fails_keeps_what_it_made_before():
    needs = {"checkpoint": "fetch"}
    before = JobNote(run=ONE, key=ONE, needs={}, seconds=1.0, gone=True)
    assert heads.job_note(needs, TWO, before, None) == JobNote(run=TWO, key=ONE, needs={}, seconds=1.0)
    assert heads.job_note(needs, TWO, None, None) == JobNote(run=TWO)
    record = SimpleNamespace(seconds=3.0, peak_bytes=9, anonymous_bytes=5)
    note = JobNote(run=TWO, key=TWO, needs={"checkpoint": "fetch"}, seconds=3.0, memory=5)
    assert heads.job_note(needs, TWO, before, record) == note
    record.anonymous_bytes = 0  # the run was too short for a sample
    assert heads.job_note(needs, TWO, before, record).memory == 9


@pytest.mark.parametrize(
    ("place", "name"),
    [("project", "copy.yaml"), ("project/sub", "one.yaml"), ("other", "one.yaml")],
    ids=["a copied or renamed recipe file", "a file in another folder", "another project with equal paths"],
)
def test_a_recipe_of_another_file_never_has_this_recipes_last_build(tmp_path, place, name):
    for store in (Store(tmp_path / "shared"), Store(tmp_path / "project" / "cache")):
        build_once(store, loaded_from(tmp_path / "project"))
        assert Heads(store.notes).of(loaded_from(tmp_path / place, name)) == NEVER


def test_a_recipe_that_gets_another_name_keeps_its_last_build(tmp_path):
    store = Store(tmp_path / "cache")
    build_once(store, loaded_from(tmp_path))
    renamed = loaded_from(tmp_path, recipe=RECIPE.replace("two", "three"))
    assert Heads(store.notes).of(renamed).name == "two"


def test_a_variant_that_gets_a_field_by_include_keeps_its_last_build(tmp_path):
    store, recipe = Store(tmp_path / "cache"), RECIPE.replace("two", "two-${precision}")
    first, second = variants_from(tmp_path, recipe=recipe + MATRIX)
    build_once(store, first)
    again, other = variants_from(tmp_path, recipe=recipe + MATRIX.replace("}", ", include: [{target.isa: avx2}]}"))
    assert (again.name, other.name) == (first.name, second.name)
    assert again.variant != first.variant
    assert Heads(store.notes).of(again).jobs
    assert Heads(store.notes).of(other) == NEVER


def test_a_variant_with_another_label_has_no_last_build_and_is_compared_with_none(tmp_path):
    store = Store(tmp_path / "cache")
    first, second = variants_from(tmp_path, recipe=RECIPE + MATRIX)
    build_once(store, first)
    assert Heads(store.notes).of(first).jobs
    assert Heads(store.notes).of(second) == NEVER
    assert Heads(store.notes).before(second) == (NEVER, "")


def test_a_project_that_moves_with_its_store_keeps_its_last_builds(tmp_path):
    build_once(Store(tmp_path / "here" / "cache"), loaded_from(tmp_path / "here"))
    (tmp_path / "here").rename(tmp_path / "there")
    store = Store(tmp_path / "there" / "cache")
    assert Heads(store.notes).of(loaded_from(tmp_path / "there")).jobs == {"fetch": JobNote(run=ONE, key=ONE)}


def test_a_recipe_without_a_build_is_compared_with_the_nearest_one_whose_file_is_gone(tmp_path):
    store = Store(tmp_path / "cache")
    for name, recipe in (
        ("near.yaml", RECIPE + "precision: int8\n"),
        ("far.yaml", RECIPE + "precision: int8\nhermetic: true\n"),
    ):
        build_once(store, loaded_from(tmp_path, name, recipe))
    renamed = loaded_from(tmp_path, "new.yaml")
    assert Heads(store.notes).before(renamed) == (NEVER, "")
    (tmp_path / "near.yaml").unlink()
    (tmp_path / "far.yaml").unlink()
    head, path = Heads(store.notes).before(renamed)
    assert (head.jobs, path) == ({"fetch": JobNote(run=ONE, key=ONE)}, "near.yaml")
    other = loaded_from(tmp_path, "other.yaml", RECIPE.replace("two", "three").replace("a/b", "c/d"))
    assert Heads(store.notes).before(other) == (NEVER, "")


def test_jobs_that_the_first_build_of_a_renamed_recipe_did_not_reach_keep_their_notes(tmp_path):
    store = Store(tmp_path / "cache")
    build_once(store, loaded_from(tmp_path))
    (tmp_path / "one.yaml").unlink()
    renamed = loaded_from(tmp_path, "new.yaml")
    keep(store, renamed, {"export": JobNote(run=TWO)})
    assert Heads(store.notes).of(renamed).jobs == {"fetch": JobNote(run=ONE, key=ONE), "export": JobNote(run=TWO)}
    assert Heads(store.notes).before(renamed)[1] == ""


def test_a_link_that_leads_to_another_file_is_compared_with_its_own_last_build(tmp_path):
    store = Store(tmp_path / "cache")
    (tmp_path / "link.yaml").symlink_to("one.yaml")
    build_once(store, loaded_from(tmp_path, "link.yaml"))
    (tmp_path / "link.yaml").unlink()
    (tmp_path / "two.yaml").write_text(RECIPE)
    (tmp_path / "link.yaml").symlink_to("two.yaml")
    head, path = Heads(store.notes).before(loaded_from(tmp_path, "link.yaml"))
    assert (head.name, path) == ("two", "")
    assert Heads(store.notes).before(loaded_from(tmp_path, "two.yaml")) == (NEVER, "")
