"""Look-ups of builds with a lock: `--locked` compares each job with the lock, `--frozen` trusts the lock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.builder.job import Job
from engine.builder.lookup import Lookup
from engine.builder.variant import PlannedVariant
from engine.errors import LockError, StepError, UserError
from engine.key import Key, digest_of, key_of
from engine.lockfile import differences, names, observe, reported
from engine.lockfile.content import Lock, LockedOutput, Place, Rows
from engine.store.record import Record
from engine.store.store import Store
from engine.text import distribution


class LockedLookup(Lookup):
    """A look-up that takes hub commits from the locks and refuses an artifact that differs from the locked artifact."""

    def __init__(self, store: Store, locks: Mapping[str, Lock]) -> None:
        """`locks` maps the name of each variant to the lock of the variant's recipe.

        Raises LockError if two locks have different commits of one hub revision.
        """
        super().__init__(store, pinned=_pinned(locks))
        self.locked_tools = {name: value for lock in _distinct(locks) for name, value in lock.tools.items()}
        outputs = {id(lock): lock.outputs_where(lambda facts: observe.holds(facts, self)) for lock in _distinct(locks)}
        self._outputs: dict[str, Mapping[Place, LockedOutput]] = {
            variant: outputs[id(lock)] for variant, lock in locks.items()
        }

    def find(self, job: Job, key: Key) -> Record | None:
        """Return the record of a job; for a measurement whose figures the lock has, the record with these figures."""
        locked = self._outputs[job.recipe].get((job.recipe, job.name))
        return reported.filed(self, job, key, locked) or super().find(job, key)

    def accept(self, job: Job, record: Record) -> None:
        """Raise LockError where the lock has the same key as the record, but another artifact."""
        _refuse_other_artifact(self._outputs[job.recipe].get((job.recipe, job.name)), job, record)


class FrozenLookup(Lookup):
    """A look-up that takes the rows of sources, tools and code from the locks, without reading sources and code.

    A job whose locked key is not in the store gets the key of this machine, and is built if need be, if its code is the
    locked code: another version of this program delivers what is stored, and builds nothing anew.
    """

    def __init__(self, store: Store, locks: Mapping[str, Lock], variants: Mapping[str, PlannedVariant]) -> None:
        """`locks` maps the name of each variant to its recipe's lock; `variants` maps the name to the planned variant.

        Raises LockError if two locks have different commits of one hub revision.
        """
        super().__init__(store, pinned=_pinned(locks))
        self._locks = locks
        self._variants = variants
        self._trusted: set[Place] = set()

    def key(self, job: Job, inputs: Mapping[str, str]) -> Key:
        """Return the job's key in the lock where the store has a record of that key, else the key of this machine."""
        locked_keys = [*self._locked_keys(job, inputs), *self._recorded_keys(job)]
        for key in locked_keys:
            if self.find(job, key) is not None:
                self._trusted.add((job.recipe, job.name))
                return key
        self._refuse_other_code(job, locked_keys)
        try:
            return super().key(job, inputs)
        except UserError as error:
            keys = [f"the store has no record of its locked key {digest_of(key)}" for key in locked_keys[:1]]
            raise StepError(error.what, [*error.facts, *keys], error.hint) from error

    def find(self, job: Job, key: Key) -> Record | None:
        """Return the record of a job; for a measurement whose figures the lock has, the record with these figures."""
        lock = self._locks[job.recipe]
        locked = next((each for each in lock.outputs_of(job.recipe, job.name) if each.key == digest_of(key)), None)
        return reported.filed(self, job, key, locked) or super().find(job, key)

    def accept(self, job: Job, record: Record) -> None:
        """Raise LockError where the lock has the same key as the record, but another artifact."""
        outputs = self._locks[job.recipe].outputs_of(job.recipe, job.name)
        _refuse_other_artifact(next((each for each in outputs if each.key == record.digest), None), job, record)

    def changed_meanwhile(self, job: Job) -> Path | None:
        """Return the recipe's path for a job whose key was taken from the lock, so that the job fails.

        A job with a locked key runs only if its record has vanished since the look-up.
        """
        if (job.recipe, job.name) in self._trusted:
            return self._variants[job.recipe].loaded.path
        return super().changed_meanwhile(job)

    def _locked_keys(self, job: Job, inputs: Mapping[str, str]) -> Iterator[Key]:
        """Yield the keys that the lock allows for a job; the key with this machine's facts comes first."""
        lock = self._locks[job.recipe]
        variant = self._variants[job.recipe]
        code = lock.code_of(job.recipe, job.name)
        sources = {name: names.name_of(source, variant) for name, source in job.step.sources().items()}
        tools = set(job.step.tools_used())
        if code is None or not tools <= lock.tools.keys() or not set(sources.values()) <= lock.sources.keys():
            return
        rows = {name: names.row_of(source, lock.sources[source]) for name, source in sources.items()}
        for facts in self._facts(job, lock):
            yield key_of(
                options=job.step.options(),
                code=code,
                inputs={**rows, **inputs},
                tools={tool: lock.tools[tool] for tool in tools},
                facts=facts,
                variables={name: lock.variables[name] for name in job.step.variables if name in lock.variables},
            )

    def _recorded_keys(self, job: Job) -> Iterator[Key]:
        """Yield the keys whose digests a lock of another version has, as the store's records have them.

        That version may have given its keys other rows, so they cannot be computed. They count only as long as the
        recipe is as it was locked.
        """
        lock, variant = self._locks[job.recipe], self._variants[job.recipe]
        was = lock.variants.get(job.recipe)
        if lock.version == distribution.version() or was is None or was.recipe != names.recipe_rows(variant):
            return
        records = (self.store.read(output.key) for output in lock.outputs_of(job.recipe, job.name))
        yield from (record.key for record in records if record is not None)

    def _refuse_other_code(self, job: Job, locked_keys: Sequence[Key]) -> None:
        """Raise LockError for a job that is not stored, and whose code is not the locked code."""
        lock, variant = self._locks[job.recipe], self._variants[job.recipe]
        if lock.code_of(job.recipe, job.name) in (None, str(self.code(job.step))):
            return
        every = ((each.name, lock.code_of(job.recipe, each.name), self.code(each.step)) for each in variant.jobs)
        changed = [name for name, locked, here in every if locked not in (None, str(here))]
        facts = [f"the store has no record of its locked key {digest_of(key)}" for key in locked_keys[:1]]
        facts.append(f"`recipe lock` would change {differences.code_of(changed)}")
        if lock.version != distribution.version():
            facts.insert(0, f"the lock {differences.of_another_version(lock)}")
        raise LockError(
            f"{job.name!r} of {job.recipe} would run with other code than the lock names",
            facts,
            f"build with the locked version and code, or accept what is here: `recipe lock {variant.loaded.path}`",
        )

    def _facts(self, job: Job, lock: Lock) -> list[Rows]:
        """Return the facts that a job's key may have: first this machine's facts, then the facts in the lock."""
        used = job.step.facts_used()
        facts: list[Rows] = []
        with contextlib.suppress(KeyError):  # an unknown fact: the key of this machine reports it
            facts.append(self.facts(used, job.step.hardware()))
        for section in lock.machines:
            theirs = {name: section.facts[name] for name in used if name in section.facts}
            if len(theirs) == len(set(used)) and theirs not in facts:
                facts.append(theirs)
        return facts


def _refuse_other_artifact(locked: LockedOutput | None, job: Job, record: Record) -> None:
    if locked is None or locked.artifact is None or locked.key != record.digest:
        return
    if locked.artifact != record.artifact:
        raise LockError(
            f"the output of {job.name!r} of {job.recipe} differs from the locked output",
            [f"artifact of {job.name} in {job.recipe}: locked {locked.artifact}, here {record.artifact}",
             "the inputs, tools and code are the same: the job's key is the locked key"],
            "compare the two artifacts; `recipe lock` accepts the new one",
        )  # fmt: skip


def _pinned(locks: Mapping[str, Lock]) -> dict[str, str]:
    """Return the commit that the locks have for each hub revision, by `hf:REPO@REVISION`.

    Raises LockError if two locks have different commits of one revision.
    """
    pinned: dict[str, str] = {}
    for lock in _distinct(locks):
        for name, commit in names.pins(lock).items():
            if pinned.setdefault(name, commit) != commit:
                raise LockError(
                    f"the locks of these recipes have different commits of {name}",
                    [pinned[name], commit],
                    "build the recipes one at a time, or lock them anew with `recipe lock --refresh`",
                )
    return pinned


def _distinct(locks: Mapping[str, Lock]) -> list[Lock]:
    """Return a list with each lock once, because all variants of a recipe have the same lock object."""
    return list({id(lock): lock for lock in locks.values()}.values())
