"""Look-ups of builds that go by a lock: `--locked` holds each job to it, `--frozen` trusts it unseen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.builder.jobs import Job
from engine.builder.lookup import Lookup, Variant
from engine.errors import LockError, StepError, UserError
from engine.key import Key, digest_of, key_of
from engine.lockfile import names, observe
from engine.lockfile.content import Lock, Made, Place, Rows
from engine.store.store import Record, Store


class LockedLookup(Lookup):
    """Takes the commits of hub revisions from the locks, and lets no artifact pass that is not the locked one."""

    def __init__(self, store: Store, locks: Mapping[str, Lock]) -> None:
        """`locks` are the variants' locks, by the variants' names. Raises LockError where two do not go together."""
        super().__init__(store, pinned=_pinned(locks))
        made = {id(lock): lock.made_where(lambda facts: observe.holds(facts, self)) for lock in _distinct(locks)}
        self._made: dict[str, Mapping[Place, Made]] = {variant: made[id(lock)] for variant, lock in locks.items()}

    def accept(self, job: Job, record: Record) -> None:
        """Raise LockError for another artifact than the locked one of the same key."""
        locked = self._made[job.recipe].get((job.recipe, job.name))
        if locked is None or locked.artifact is None or locked.key != record.digest:
            return
        if locked.artifact != record.artifact:
            raise LockError(
                f"what {job.name!r} of {job.recipe} made is not what is locked",
                [f"artifact of {job.name} in {job.recipe}: locked {locked.artifact}, here {record.artifact}",
                 "from the same inputs, tools and code: its key is the locked one"],
                "look at what differs; `recipe lock` accepts it",
            )  # fmt: skip


class FrozenLookup(Lookup):
    """Takes sources, tools and code from the locks without looking at them, as far as the store has what they made.

    A job whose key by the lock is not in the store is looked up, and built, like any other.
    """

    def __init__(self, store: Store, locks: Mapping[str, Lock], variants: Mapping[str, Variant]) -> None:
        """`locks` and `variants` go by the variants' names. Raises LockError where two locks do not go together."""
        super().__init__(store, pinned=_pinned(locks))
        self._locks = locks
        self._variants = variants
        self._trusted: set[Place] = set()

    def key(self, job: Job, inputs: Mapping[str, str]) -> Key:
        """Return the job's key by the lock where the store has its record, else as it is here."""
        tried = list(self._keys_by_lock(job, inputs))
        for key in tried:
            if self.find(job, key) is not None:
                self._trusted.add((job.recipe, job.name))
                return key
        try:
            return super().key(job, inputs)
        except UserError as error:
            keys = [f"the store has no record of its locked key {digest_of(key)}" for key in tried[:1]]
            raise StepError(error.what, [*error.facts, *keys], error.hint) from error

    def changed_meanwhile(self, job: Job) -> Path | None:
        """Return the lock for a job whose record vanished after it was found: built here it may have another key."""
        if (job.recipe, job.name) in self._trusted:
            return self._variants[job.recipe].loaded.path
        return super().changed_meanwhile(job)

    def _keys_by_lock(self, job: Job, inputs: Mapping[str, str]) -> Iterator[Key]:
        """Yield the job's key as the lock has it, on this machine and then on the others of the lock."""
        lock = self._locks[job.recipe]
        variant = self._variants[job.recipe]
        code = lock.steps.get(job.name)
        said = {name: names.name_of(source, variant) for name, source in job.step.sources().items()}
        tools = set(job.step.tools_used())
        if code is None or not tools <= lock.tools.keys() or not set(said.values()) <= lock.sources.keys():
            return
        found = {name: names.row_of(source, lock.sources[source]) for name, source in said.items()}
        for facts in self._facts(job, lock):
            yield key_of(
                options=job.step.options(),
                code=code,
                inputs={**found, **inputs},
                tools={tool: lock.tools[tool] for tool in tools},
                facts=facts,
                variables={name: lock.variables[name] for name in job.step.variables if name in lock.variables},
            )

    def _facts(self, job: Job, lock: Lock) -> list[Rows]:
        """Return the facts that a job's key may have: this machine's first."""
        wanted = job.step.facts_used()
        found: list[Rows] = []
        with contextlib.suppress(KeyError):  # a fact that nobody knows: the ordinary look-up says so
            found.append(self.facts(wanted, job.step.hardware()))
        for section in lock.machines:
            theirs = {name: section.facts[name] for name in wanted if name in section.facts}
            if len(theirs) == len(set(wanted)) and theirs not in found:
                found.append(theirs)
        return found


def _pinned(locks: Mapping[str, Lock]) -> dict[str, str]:
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
    """Return each lock once: the variants of a recipe share theirs."""
    return list({id(lock): lock for lock in locks.values()}.values())
