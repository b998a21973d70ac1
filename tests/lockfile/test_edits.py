"""Each edit of one line of a lock is refused, by `--locked` and by `--frozen`, although the store has everything."""

import lock_edits
import lock_steps
import pytest
from lock_builds import variant

from engine.builder.executors.local import LocalExecutor
from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.errors import Exit, Refusals, UserError
from engine.lockfile import locking
from engine.store.store import Store

PASSES: dict[str, str] = {}
"""The edits that pass, each with its reason, as docs/ci.md lists them: none."""


STEPS = (
    lock_steps.Dice,
    lock_steps.After,
    lock_steps.Count,
    lock_steps.Decide,
    lock_steps.Local,
    lock_steps.Behind,
)


def one(project):
    return [variant(project, *(step() for step in STEPS))]


def matrix(project):
    return [variant(project, lock_steps.Local(), name=name) for name in ("r", "r-int8")]


def exit_of(project, plans, *, is_frozen=None):
    """Return the exit code of a build with a lock; without `is_frozen`, of an ordinary build."""
    refusals = Refusals()
    store = Store(project / "cache")
    try:
        lookup = Lookup(store)
        if is_frozen is not None:
            locks = locking.locks_of(plans, refusals)
            lookup = locking.lookup_of(store, locks, refusals, is_frozen=is_frozen, partly=False)
        refusals.refuse(1)
        return list(run(plans, lookup, LocalExecutor(1), Options(out=project / "build")))[-1].exit
    except UserError as error:
        return error.exit


@pytest.mark.parametrize("plans", [one, matrix])
@pytest.mark.usefixtures("isa")
def test_each_line_of_a_lock_that_is_edited_is_refused(project, monkeypatch, plans):
    monkeypatch.setattr(lock_steps.Local, "variables", ("OF_A_TEST",))
    monkeypatch.setenv("OF_A_TEST", "1")
    plans = plans(project)
    assert exit_of(project, plans) is Exit.OK
    locking.write(Store(project / "cache"), plans, refresh=False)
    path = project / "r.lock"
    text = path.read_text()
    kinds = {"checked": False, "frozen": True}
    assert {exit_of(project, plans, is_frozen=is_frozen) for is_frozen in kinds.values()} == {Exit.OK}
    passed = []
    for edit, edited in lock_edits.edits(text):
        path.write_text(edited)
        for kind, is_frozen in kinds.items():
            passed += [f"{edit} {kind}"] if exit_of(project, plans, is_frozen=is_frozen) is Exit.OK else []
    assert passed == [*PASSES]


def test_a_lock_of_the_older_form_has_no_digest_and_may_not_have_one(project):
    plans = matrix(project)
    exit_of(project, plans)
    locking.write(Store(project / "cache"), plans, refresh=False)
    path = project / "r.lock"
    text = path.read_text()
    path.write_text(lock_edits.unsealed(text))
    assert exit_of(project, plans, is_frozen=False) is Exit.OK
    path.write_text(text.replace("lock: 2\n", "lock: 1\n"))
    assert exit_of(project, plans, is_frozen=False) is Exit.USAGE
