"""Writing locks, and builds with `--locked` and `--frozen`, with steps of a few milliseconds."""

from dataclasses import replace

import lock_edits
import lock_steps
import pretended
import pytest
from lock_builds import build, built, everywhere, frozen, frozen_build, locked, lose, states, variant, write
from small_lock import LOCK

from engine.builder import facts
from engine.builder.code import closure
from engine.builder.executors.local import LocalExecutor
from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.digest import Digest
from engine.errors import Exit, LockError, RecipeError, Refusals, UsageError
from engine.events import Ended, Started
from engine.lockfile import locking
from engine.lockfile.content import Lock, LockedJob, LockedOutput, LockedVariant, sections
from engine.lockfile.locking import find_lock, lock_path, write_lock
from engine.machine import tools
from engine.store.store import Store
from engine.text import distribution


def test_before_a_build_only_the_first_keys_are_known_and_after_it_all(project):
    plan = variant(project, lock_steps.Liar())
    with pytest.raises(LockError, match="has no lock") as caught:
        locked(project, plan)
    assert "recipe lock" in caught.value.hint
    before = everywhere(write(project, plan))
    assert before["read"].artifact is None
    assert before["liar"] is None
    ended = {event.job: event for event in build(project, plan) if isinstance(event, Ended)}
    after = everywhere(write(project, plan))
    assert after == {name: LockedOutput(ended[name].key, ended[name].artifact) for name in ("read", "liar")}


def test_an_empty_store_takes_nothing_out_of_a_lock(project):
    plan, full = built(project, lock_steps.Liar())
    (project / "cache").rename(project / "away")
    assert write(project, plan) == full
    assert list(full.sources) == ["t.txt"]


def test_a_step_that_differs_from_build_to_build_has_a_key_only_and_so_has_what_follows(project):
    plan = variant(project, lock_steps.Dice(), lock_steps.After())
    build(project, plan)
    outputs = everywhere(write(project, plan))
    assert outputs["dice"].artifact is None
    assert outputs["after"].key
    assert outputs["after"].artifact is None
    again = build(project, plan, force=frozenset({"dice"}))
    assert states(again)["after"] == "cached"
    assert everywhere(write(project, plan)) == outputs
    assert states(build(project, plan, locked(project, plan))) == dict.fromkeys(("read", "dice", "after"), "cached")


def test_another_machine_adds_its_section_and_each_is_checked_where_its_facts_hold(project, isa):
    plan, first = built(project, lock_steps.Local(), lock_steps.Behind())
    assert everywhere(first)["local"] is None
    [section] = first.machines
    assert section.facts == {"cpu.isa": "avx2"}
    assert {job for _, job in section.outputs} == {"local", "behind"}
    isa("avx512f")
    locked(project, plan)  # nothing is known of this machine: nothing differs
    unbuilt = write(project, plan)
    assert [section.facts["cpu.isa"] for section in unbuilt.machines] == ["avx2", "avx512f"]
    build(project, plan)
    both = write(project, plan)
    assert both.machines[0] == first.machines[0]
    assert len(both.machines[1].outputs) == 2
    lock_edits.edit(project / "r.lock", both.machines[0].outputs["r", "local"].key, "0" * 32)
    locked(project, plan)
    isa("avx2")
    with pytest.raises(LockError, match="1 row differs") as caught:
        locked(project, plan)
    assert caught.value.facts[0].startswith("key of local in r: locked 0000")


def test_a_section_with_a_fact_that_nobody_knows_any_more_is_another_machines(project, isa):
    plan, _ = built(project, lock_steps.Local())
    lock_edits.edit(project / "r.lock", "cpu.isa: avx2", "cpu.colour: red")
    locked(project, plan)
    assert [section.facts for section in write(project, plan).machines] == [{"cpu.colour": "red"}, {"cpu.isa": "avx2"}]


def test_a_job_that_waits_for_hardware_has_no_key_and_its_tools_and_variables_are_anothers(project, monkeypatch):
    monkeypatch.setattr(lock_steps.Elsewhere, "variables", ("OF_A_TEST",))
    plan, lock = built(project, lock_steps.Elsewhere())
    assert lock.machines == ()
    assert "tensorrt" not in lock.tools
    with monkeypatch.context() as there:
        there.setattr(facts, "can_run", lambda _: True)
        there.setitem(tools._versions, "tensorrt", "10.3")
        pretended.fact(there, "gpu.name", "T4 (sm_75)")
        there.setenv("OF_A_TEST", "1")
        with pytest.raises(LockError) as caught:
            locked(project, plan)
        assert "tools.tensorrt: not locked, here 10.3" in caught.value.facts
        assert "env.OF_A_TEST: not locked, here 1" in caught.value.facts
        full = write(project, plan)
    assert full.tools["tensorrt"] == "10.3"
    assert full.variables == {"OF_A_TEST": "1"}
    assert [section.facts for section in full.machines] == [{"gpu.name": "T4 (sm_75)"}]
    locked(project, plan)
    assert write(project, plan) == full


def test_a_step_that_gives_other_bytes_from_the_same_inputs_fails_a_locked_build(project):
    plan, lock = built(project, lock_steps.Liar())
    (project / "cache").rename(project / "away")
    events = build(project, plan, locked(project, plan))
    assert states(events) == {"read": "built", "liar": "failed"}
    assert events[-1].exit is Exit.USAGE
    error = next(event.error for event in events if isinstance(event, Ended) and event.job == "liar")
    assert f"artifact of liar in r: locked {everywhere(lock)['liar'].artifact}, here " in error.facts[0]
    with pytest.raises(LockError) as caught:
        locked(project, plan)
    assert caught.value.facts[0].startswith("artifact of liar in r: ")


def test_a_frozen_build_finds_everything_though_source_tool_and_code_changed(project, monkeypatch, isa):
    plan, _ = built(project, lock_steps.Dice(), lock_steps.After(), lock_steps.Local(), lock_steps.Behind())
    (project / "t.txt").unlink()
    monkeypatch.setitem(tools._versions, "pyyaml", "99")
    monkeypatch.setattr(closure, "of_step", lambda *_: pytest.fail("code was looked at"))
    isa("avx512f")
    events = frozen_build(project, plan)
    assert set(states(events).values()) == {"cached"}


def test_a_frozen_build_without_source_and_record_names_both(project):
    plan, lock = built(project)
    lose(project)
    (project / "t.txt").unlink()
    events = frozen_build(project, plan)
    assert states(events) == {"read": "failed"}
    error = next(event.error for event in events if isinstance(event, Ended))
    assert "t.txt" in error.what
    assert everywhere(lock)["read"].key in " ".join(error.facts)


def edited_code(monkeypatch):
    """Let the code of every step be another one."""
    of_step = closure.of_step
    monkeypatch.setattr(closure, "of_step", lambda *its: replace(of_step(*its), digest=Digest("0" * 32)))


def test_a_frozen_build_builds_nothing_anew_whose_code_is_not_the_locked_code(project, monkeypatch):
    plan, _ = built(project, lock_steps.Local())
    lose(project)
    edited_code(monkeypatch)
    events = frozen_build(project, plan)
    assert not [event for event in events if isinstance(event, Started)]
    error = next(event.error for event in events if isinstance(event, Ended))
    assert error.exit is Exit.USAGE
    assert error.what == "'read' of r would run with other code than the lock names"
    assert "`recipe lock` would change the code of 2 steps: local, read" in error.facts


def test_a_lock_that_states_no_version_is_of_an_older_one_and_gets_its_version_with_its_next_change(project):
    plan, lock = built(project)
    path = project / "r.lock"
    lock_edits.edit(path, f"recipe: {distribution.version()}\n", "")
    old = path.read_text()
    locked(project, plan)
    assert write(project, plan) == replace(lock, version="")
    assert path.read_text() == old
    (project / "t.txt").write_text("other")
    assert write(project, plan).version == distribution.version()


def test_a_locked_build_counts_the_steps_whose_code_came_with_another_version(project, monkeypatch):
    plan = variant(project, lock_steps.Local())
    write(project, plan)
    edited_code(monkeypatch)
    with pytest.raises(LockError, match="2 rows differ") as edited:
        locked(project, plan)
    assert [fact.split(":")[0] for fact in edited.value.facts] == ["code of local", "code of read"]
    (project / "t.txt").write_text("other")
    monkeypatch.setattr(distribution, "version", lambda: "99.0")
    with pytest.raises(LockError) as upgraded:
        locked(project, plan)
    assert upgraded.value.what.endswith(" and this is recipe 99.0: 3 rows differ")
    assert upgraded.value.facts[0] == "the code of 2 steps: local, read"
    assert upgraded.value.facts[1].startswith("t.txt: locked ")


def test_a_frozen_build_of_another_version_finds_records_whose_keys_have_other_rows_now(project, monkeypatch):
    plan, _ = built(project, lock_steps.Local())
    edited_code(monkeypatch)
    monkeypatch.setattr(lock_steps.Local, "tools", ("pyyaml",))
    assert set(states(frozen_build(project, plan)).values()) == {"cached", "failed"}
    monkeypatch.setattr(distribution, "version", lambda: "99.0")
    assert set(states(frozen_build(project, plan)).values()) == {"cached"}
    recipe = project / "r.yaml"
    recipe.write_text(recipe.read_text() + "precision: int8\n")
    with pytest.raises(LockError, match="1 row differs"):
        frozen(project, variant(project, lock_steps.Local()))


def test_a_step_with_other_code_in_another_variant_is_locked_and_found_under_both(project, monkeypatch):
    one = variant(project, lock_steps.Local())
    other = variant(project, lock_steps.Local(), name="other")
    of_step = closure.of_step
    others = {id(job.step) for job in other.jobs}

    def code(step):
        known = of_step(step)
        return replace(known, digest=Digest("0" * 32)) if id(step) in others else known

    monkeypatch.setattr(closure, "of_step", code)
    events = run([one, other], Lookup(Store(project / "cache")), LocalExecutor(1), Options(out=project / "build"))
    assert {event.state for event in events if isinstance(event, Ended)} == {"built"}
    [written] = locking.write(Store(project / "cache"), [one, other], refresh=False)
    assert written.lock.code_of("other", "local") == "0" * 32 != written.lock.code_of("r", "local")
    for each in (one, other):
        locked(project, each, partly=True)
        assert set(states(build(project, each, frozen(project, each, partly=True))).values()) == {"cached"}


def test_a_lock_lies_beside_its_recipe_and_belongs_to_one(tmp_path):
    recipe = tmp_path / "a.b.yaml"
    assert lock_path(recipe) == tmp_path / "a.b.lock"
    (tmp_path / "a.b.yml").write_text("")
    with pytest.raises(UsageError, match="would share the lock"):
        lock_path(recipe)
    with pytest.raises(UsageError, match="called like a lock"):
        lock_path(tmp_path / "a.lock")


def test_a_lock_is_written_only_where_it_says_something_new(tmp_path):
    path = tmp_path / "r.lock"
    assert write_lock(path, LOCK)
    before = path.stat()
    assert not write_lock(path, LOCK)
    assert path.stat() == before
    assert find_lock(path) == LOCK
    assert [each.name for each in tmp_path.iterdir()] == ["r.lock"]


def test_a_folder_in_the_way_is_one_clear_error(tmp_path):
    (tmp_path / "r.lock").mkdir()
    with pytest.raises(LockError, match="cannot be read: Is a directory"):
        find_lock(tmp_path / "r.lock")
    with pytest.raises(LockError, match="cannot be written"):
        write_lock(tmp_path / "r.lock", LOCK)
    assert [each.name for each in tmp_path.iterdir()] == ["r.lock"]


def test_a_lock_tells_the_keys_of_this_machine_and_of_all_others():
    here = LockedVariant({}, {"export": LockedJob(output=LockedOutput("a" * 32))})
    other = ({"cpu.isa": "avx2"}, ("r", "validate"), LockedOutput("b" * 32))
    assert Lock({}, {}, {}, {"r": here}, sections([other])).output_keys() == {"a" * 32, "b" * 32}


@pytest.mark.usefixtures("isa")
def test_each_line_of_a_lock_that_is_edited_is_refused_before_anything_is_built(project, monkeypatch):
    monkeypatch.setattr(lock_steps.Local, "variables", ("OF_A_TEST",))
    monkeypatch.setenv("OF_A_TEST", "1")
    plan, _ = built(project, lock_steps.Dice(), lock_steps.Count(), lock_steps.Decide(), lock_steps.Local())
    path, refused = project / "r.lock", 0
    assert locking.locks_of([plan], Refusals())
    for edit, edited in lock_edits.edits(path.read_text()):
        path.write_text(edited)
        refusals = Refusals()
        assert locking.locks_of([plan], refusals) == {}, edit
        with pytest.raises(RecipeError):
            refusals.refuse(1)
        refused += 1
    assert refused > 150
