"""What a lock says to a look-up: `--locked` and `--frozen` deliver what the lock names, or raise LockError."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.builder.job import Job
from engine.builder.live_rows import LiveRows
from engine.builder.lookup import Lookup
from engine.builder.variant import PlannedVariant
from engine.errors import LockError, StepError, UserError
from engine.key import Key, digest_of, inputs_of, key_of
from engine.lockfile import differences, names, observe, reported
from engine.lockfile.content import Lock, LockedOutput, Place, Rows
from engine.lockfile.differences import Difference
from engine.store.record import Record
from engine.text import distribution, lists


class LockedRows:
    """The locks of a `--locked` build: they have hub commits, figures of measurements, and the artifacts of jobs."""

    def __init__(self, locks: Mapping[str, Lock], live: LiveRows) -> None:
        """`locks` maps the name of each variant to the lock of the variant's recipe.

        Raises LockError if two locks have different commits of one hub revision.
        """
        self.pinned = _pinned(locks)
        self.tools = {name: value for lock in _distinct(locks) for name, value in lock.tools.items()}
        self._locks = locks
        outputs = {id(lock): lock.outputs_where(lambda facts: observe.holds(facts, live)) for lock in _distinct(locks)}
        self._outputs: dict[str, Mapping[Place, LockedOutput]] = {
            variant: outputs[id(lock)] for variant, lock in locks.items()
        }

    def key(self, lookup: Lookup, job: Job, inputs: Mapping[str, str]) -> Key:
        """Return the key of this machine."""
        return lookup.unlocked_key(job, inputs)

    def key_of_run(self, lookup: Lookup, job: Job, key: Key) -> Key:
        """Return the key: it is that of this machine."""
        del lookup, job
        return key

    def filed(self, lookup: Lookup, job: Job, key: Key) -> Record | None:
        """Return the record of a measurement whose figures a lock has for this machine; None for any other job."""
        return reported.filed(lookup, job, key, self._outputs[job.recipe].get((job.recipe, job.name)))

    def keys_of(self, job: Job) -> frozenset[str]:
        """Return the digests of the keys that the lock names for a job."""
        return frozenset(each.key for each in _outputs(self._locks, job))

    def accept(self, lookup: Lookup, job: Job, record: Record) -> None:
        """Raise LockError for another output than the lock names for the key, or than it names for another machine."""
        outputs = _outputs(self._locks, job)
        if lookup.away(job) is None:
            locked = self._outputs[job.recipe].get((job.recipe, job.name))
            outputs = [locked] if locked is not None and locked.key == record.digest else []
        _refuse_other_output(job, record, outputs)


class FrozenRows:
    """The locks of a `--frozen` build: it delivers what they name, and reads nothing for what is stored.

    A job whose locked output is not stored is built, if its code and the sources of its recipe are the locked ones; its
    output must be the locked artifact. An output without a locked artifact is delivered only if it is stored.
    """

    tools: Mapping[str, str] = {}

    def __init__(self, locks: Mapping[str, Lock], variants: Mapping[str, PlannedVariant], live: LiveRows) -> None:
        """`locks` maps the name of each variant to its recipe's lock; `variants` maps the name to the planned variant.

        Raises LockError if two locks have different commits of one hub revision.
        """
        self.pinned = _pinned(locks)
        self._locks = locks
        self._variants = variants
        self._live = live

    def key(self, lookup: Lookup, job: Job, inputs: Mapping[str, str]) -> Key:
        """Return the job's key in the lock where the store has a record of that key, else the key of this machine.

        Raises LockError for a job that cannot give what the lock names.
        """
        for key in (*self._locked_keys(job, inputs), *self._recorded_keys(lookup, job)):
            record = lookup.record(job, key)
            if record is not None:
                self.accept(lookup, job, record)
                return key
        return self._unlocked_key(lookup, job, inputs)

    def key_of_run(self, lookup: Lookup, job: Job, key: Key) -> Key:
        """Return the key of this machine: the output of the locked key is gone meanwhile. Raises LockError."""
        return self._unlocked_key(lookup, job, {name: row for name, row in inputs_of(key).items() if name in job.needs})

    def filed(self, lookup: Lookup, job: Job, key: Key) -> Record | None:
        """Return the record of a measurement whose figures the lock has for this key; None for any other job."""
        locked = next((each for each in _outputs(self._locks, job) if each.key == digest_of(key)), None)
        return reported.filed(lookup, job, key, locked)

    def keys_of(self, job: Job) -> frozenset[str]:
        """Return the digests of the keys that the lock names for a job."""
        return frozenset(each.key for each in _outputs(self._locks, job))

    def accept(self, lookup: Lookup, job: Job, record: Record) -> None:
        """Raise LockError for another output than the lock names."""
        del lookup
        _refuse_other_output(job, record, _outputs(self._locks, job))

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
        outputs = {output.key for output in lock.outputs_of(job.recipe, job.name)}
        for facts in self._facts(job, lock):
            key = key_of(
                options=job.step.options(),
                code=code,
                inputs={**rows, **inputs},
                tools={tool: lock.tools[tool] for tool in tools},
                facts=facts,
                variables={name: lock.variables[name] for name in job.step.variables if name in lock.variables},
            )
            if not outputs or digest_of(key) in outputs:
                yield key

    def _recorded_keys(self, lookup: Lookup, job: Job) -> Iterator[Key]:
        """Yield the keys whose digests a lock of another version has, as the store's records have them.

        That version may have given its keys other rows, so they cannot be computed.
        """
        lock = self._locks[job.recipe]
        if lock.version != distribution.version():
            records = (lookup.store.read(output.key) for output in lock.outputs_of(job.recipe, job.name))
            yield from (record.key for record in records if record is not None)

    def _unlocked_key(self, lookup: Lookup, job: Job, inputs: Mapping[str, str]) -> Key:
        """Return the key of a job whose locked output is not stored.

        Raises LockError where the job's output could be another one than the lock names.
        """
        outputs = _outputs(self._locks, job)
        lacking = [f"the store has no record of its locked key {each.key}" for each in outputs[:1]]
        away = lookup.away(job)
        if not outputs and away is not None:
            self._refuse_other_code(job, lacking)
            fitting = [*lookup.from_elsewhere(job, lookup.unlocked_key(job, inputs), away)]
            if len(fitting) == 1:
                return fitting[0].key
            lacking = [
                f"{lists.counted(len(fitting), 'record')} fit the job",
                *(f"key: {each.digest}" for each in fitting),
            ]
        if not any(output.artifact for output in outputs):
            raise LockError(
                f"the lock names no output of {job.name!r} of {job.recipe}, and no output is stored under its key",
                lacking or ["the job was not built when the lock was written"],
                f"`recipe build --locked {self._path(job)}` builds it; or bring the store or the remote that has it",
            )
        self._refuse_other_code(job, lacking)
        self._refuse_other_sources(lookup, job)
        try:
            return lookup.unlocked_key(job, inputs)
        except UserError as error:
            raise StepError(error.what, [*error.facts, *lacking], error.hint) from error

    def _refuse_other_code(self, job: Job, lacking: Sequence[str]) -> None:
        """Raise LockError for a job that is not stored, and whose code is not the locked code."""
        lock, variant = self._locks[job.recipe], self._variants[job.recipe]
        if lock.code_of(job.recipe, job.name) == str(self._live.code(job.step)):
            return
        changed = [
            each.name for each in variant.jobs if lock.code_of(job.recipe, each.name) != str(self._live.code(each.step))
        ]
        facts = [*lacking, f"`recipe lock` would change {differences.code_of(changed)}"]
        if lock.version != distribution.version():
            facts.insert(0, f"the lock {differences.of_another_version(lock)}")
        raise LockError(
            f"{job.name!r} of {job.recipe} would run with other code than the lock names",
            facts,
            f"build with the locked version and code, or accept what is here: `recipe lock {self._path(job)}`",
        )

    def _refuse_other_sources(self, lookup: Lookup, job: Job) -> None:
        """Raise LockError for a job that must run, if any source of its recipe has other content than the lock names.

        A source that is missing fails only the job that reads it. A repository on a hub has its locked commit.
        """
        lock = self._locks[job.recipe]
        sources = {
            names.name_of(source, variant): source
            for variant in self._variants.values()
            if self._locks[variant.name] is lock
            for each in variant.jobs
            for source in each.step.sources().values()
            if not names.is_on_hub(source)
        }
        here: dict[str, str] = {}
        for name, source in sources.items():
            with contextlib.suppress(UserError):
                here[name] = lookup.source(source).row
        facts = [str(Difference(name, lock.sources.get(name), row)) for name, row in here.items()
                 if lock.sources.get(name) != row]  # fmt: skip
        if facts:
            raise LockError(
                f"{job.name!r} of {job.recipe} would be built from other sources than the lock names",
                facts,
                f"take back the change, or accept it with `recipe lock {self._path(job)}`",
            )

    def _path(self, job: Job) -> Path:
        return self._variants[job.recipe].loaded.path

    def _facts(self, job: Job, lock: Lock) -> list[Rows]:
        """Return the facts that a job's key may have: first this machine's facts, then the facts in the lock."""
        used = job.step.facts_used()
        facts: list[Rows] = []
        with contextlib.suppress(KeyError):  # an unknown fact: the key of this machine reports it
            facts.append(self._live.facts(used, job.step.hardware()))
        for section in lock.machines:
            theirs = {name: section.facts[name] for name in used if name in section.facts}
            if len(theirs) == len(set(used)) and theirs not in facts:
                facts.append(theirs)
        return facts


def _outputs(locks: Mapping[str, Lock], job: Job) -> Sequence[LockedOutput]:
    """Return what the lock of a job's recipe names as outputs of the job, each for another kind of machine."""
    return [*locks[job.recipe].outputs_of(job.recipe, job.name)]


def _refuse_other_output(job: Job, record: Record, outputs: Sequence[LockedOutput]) -> None:
    """Raise LockError if a lock has outputs of a job, and the record has none of them.

    A locked output without an artifact is that of its key, whatever its bytes.
    """
    same_key = [each for each in outputs if each.key == record.digest]
    if not outputs or any(each.artifact in (None, record.artifact) for each in same_key):
        return
    if not same_key and any(each.artifact == record.artifact for each in outputs):
        return
    locked = (same_key or outputs)[0]
    kind, here = ("artifact", record.artifact) if locked.artifact else ("key", record.digest)
    raise LockError(
        f"the output of {job.name!r} of {job.recipe} differs from the locked output",
        [f"{kind} of {job.name} in {job.recipe}: locked {locked.artifact or locked.key}, here {here}",
         "the inputs, tools and code are the same: the job's key is the locked key" if same_key
         else f"the lock has another key than this record, which has {record.digest}: the tools or the machine differ"],
        "bring the store or the remote that has the locked output, or compare both; `recipe lock` accepts the new one",
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
