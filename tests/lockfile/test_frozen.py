"""A build with `--frozen` delivers the artifacts that the lock names, or ends with exit code 2."""

import lock_edits
import lock_steps
import pretended
import pytest
from lock_builds import build, built, everywhere, frozen, frozen_build, locked, lose, states, variant, write

from engine.errors import Exit, LockError
from engine.events import Ended, Started
from engine.machine import tools
from engine.store.store import Store


def errors(events):
    return [event.error for event in events if isinstance(event, Ended) and event.error is not None]


def keys(events):
    return {event.job: event.key for event in events if isinstance(event, Ended)}


def refusal(events, build_began=()):
    """Return the error of a build that ended with exit code 2 after no other jobs than `build_began` had started."""
    assert events[-1].exit is Exit.USAGE
    assert [event.job for event in events if isinstance(event, Started)] == list(build_began)
    [error] = errors(events)
    assert error.exit is Exit.USAGE
    assert error.facts
    assert error.hint
    return error


def test_sources_with_other_content_are_refused_before_anything_is_built(project):
    (project / "u.txt").write_text("late")
    plan, _ = built(project, lock_steps.Local(), lock_steps.Late(source=lock_steps.source(project / "u.txt")))
    lose(project)
    for name in ("t.txt", "u.txt"):
        (project / name).write_text("other")
    error = refusal(frozen_build(project, plan))
    assert error.what == "'read' of r would be built from other sources than the lock names"
    assert [fact.partition(" locked ")[0] for fact in error.facts] == ["t.txt:", "u.txt:"]


def test_an_output_with_other_bytes_than_the_lock_names_fails_its_job_also_if_it_was_stored_meanwhile(project):
    plan, lock = built(project, lock_steps.Liar())
    build(project, plan, force=frozenset({"liar"}))
    assert "differs from the locked output" in refusal(frozen_build(project, plan)).what
    lose(project, "liar")
    error = refusal(frozen_build(project, plan), ["liar"])
    assert error.what == "the output of 'liar' of r differs from the locked output"
    assert f"artifact of liar in r: locked {everywhere(lock)['liar'].artifact}, here " in error.facts[0]


def test_an_output_that_the_lock_does_not_name_is_delivered_only_if_it_is_stored(project):
    plan, _ = built(project, lock_steps.Dice(), lock_steps.After())
    assert set(states(frozen_build(project, plan)).values()) == {"cached"}
    lose(project, "after")
    assert "'after' of r" in refusal(frozen_build(project, plan)).what
    lose(project, "dice")
    error = refusal(frozen_build(project, plan))
    assert error.what == "the lock names no output of 'dice' of r, and no output is stored under its key"
    assert "recipe build --locked" in error.hint


def test_a_lock_that_was_written_before_the_build_is_enough_for_a_frozen_one_once_the_store_has_the_results(project):
    plan = variant(project, lock_steps.Dice(), lock_steps.After())
    write(project, plan)
    assert "'read' of r" in refusal(frozen_build(project, plan)).what
    build(project, plan)
    (project / "t.txt").write_text("other")
    assert set(states(frozen_build(project, plan)).values()) == {"cached"}


def test_a_result_of_this_machine_that_the_lock_does_not_name_is_not_delivered(project, isa):
    plan, lock = built(project, lock_steps.Local(), lock_steps.Behind())
    isa("avx512f")
    other = keys(build(project, plan))["local"]
    [section] = lock.machines
    delivered = keys(frozen_build(project, plan))["local"]
    assert delivered == section.outputs["r", "local"].key != other


def test_a_job_a_recipe_or_a_variant_that_the_lock_does_not_have_is_refused_with_its_rows(project):
    def facts(plan):
        with pytest.raises(LockError, match=r"\d rows? differs?") as caught:
            frozen(project, plan)
        return list(caught.value.facts)

    built(project)
    assert facts(variant(project, lock_steps.Local())) == ["job local of r: not locked, here"]
    recipe = project / "r.yaml"
    recipe.write_text(recipe.read_text() + "precision: int8\n")
    assert facts(variant(project)) == ["recipe.precision of r: locked the default, here int8"]
    write(project, variant(project, name="other"))
    assert facts(variant(project)) == ["variant other: locked, not here", "variant r: not locked, here"]


def test_a_damaged_artifact_is_built_again_and_is_the_locked_one(project):
    plan, lock = built(project)
    store = Store(project / "cache")
    path = store.artifact_path(everywhere(lock)["read"].artifact) / "text.txt"
    path.chmod(0o644)
    path.write_text("damage")
    assert states(frozen_build(project, plan)) == {"read": "built"}
    assert path.read_text() == "text"


def test_a_lost_output_is_built_again_and_a_lock_of_the_older_form_is_followed_the_same_way(project):
    plan, _ = built(project, lock_steps.Local())
    path = project / "r.lock"
    for text in (path.read_text(), lock_edits.unsealed(path.read_text())):
        path.write_text(text)
        lose(project, "local")
        assert states(frozen_build(project, plan)) == {"read": "cached", "local": "built"}
    lose(project)
    (project / "t.txt").write_text("other")
    refusal(frozen_build(project, plan))


def test_another_version_of_a_tool_may_build_what_is_lost_if_the_bytes_are_the_locked_ones(project, monkeypatch):
    plan, _ = built(project, lock_steps.Local())
    lose(project, "read")
    monkeypatch.setitem(tools._versions, "pyyaml", "99")
    for state in ("built", "cached"):
        assert states(frozen_build(project, plan)) == {"read": state, "local": "cached"}


def test_an_artifact_that_is_gone_when_its_reader_runs_is_built_again(project, monkeypatch):
    plan, _ = built(project, lock_steps.Local())
    lookup = frozen(project, plan)
    key = lookup.key(plan.jobs[0], {})
    lose(project)
    again = lookup.placed(plan.jobs[0], key)
    assert again == key
    (project / "t.txt").write_text("other")
    late = frozen(project, plan)
    with pytest.raises(LockError, match="other sources"):
        late.key(plan.jobs[0], {})


def on_gpu(monkeypatch, version):
    monkeypatch.setattr("engine.builder.facts.can_run", lambda _: True)
    monkeypatch.setitem(tools._versions, "tensorrt", version)
    pretended.fact(monkeypatch, "gpu.name", "T4 (sm_75)")


def test_an_engine_that_the_lock_does_not_have_is_delivered_if_exactly_one_is_stored(project, monkeypatch):
    plan = variant(project, lock_steps.Elsewhere())
    write(project, plan)
    build(project, plan)
    assert "'elsewhere' of r" in refusal(frozen_build(project, plan)).what
    with monkeypatch.context() as there:
        on_gpu(there, "10.3")
        build(project, plan)
    assert states(frozen_build(project, plan)) == {"read": "cached", "elsewhere": "cached"}
    with monkeypatch.context() as there:
        on_gpu(there, "10.4")
        build(project, plan)
    assert "2 records fit" in refusal(frozen_build(project, plan)).what


def test_of_several_engines_only_the_locked_one_is_delivered(project, monkeypatch):
    monkeypatch.setattr(lock_steps.Elsewhere, "reproducible", False)
    plan = variant(project, lock_steps.Elsewhere())
    with monkeypatch.context() as there:
        on_gpu(there, "10.3")
        key = keys(build(project, plan))["elsewhere"]
        write(project, plan)
    assert keys(build(project, plan, locked(project, plan)))["elsewhere"] == key
    with monkeypatch.context() as there:
        on_gpu(there, "10.4")
        build(project, plan)
    for look in (locked, frozen):
        assert keys(build(project, plan, look(project, plan)))["elsewhere"] == key
    Store(project / "cache").record_path(key).unlink()
    error = refusal(build(project, plan, locked(project, plan)))
    assert error.facts[0].startswith(f"key of elsewhere in r: locked {key}, here ")
    assert "names no output" in refusal(frozen_build(project, plan)).what


def test_a_job_whose_code_the_lock_does_not_name_is_not_run(project):
    plan, lock = built(project)
    lock_edits.edit(project / "r.lock", f"steps:\n  read: {lock.steps['read']}\n", "")
    lose(project)
    assert "other code" in refusal(frozen_build(project, plan)).what
