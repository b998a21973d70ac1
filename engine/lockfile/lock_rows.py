"""The rows of keys under locks: `--locked` and `--frozen` deliver what the locks name, or raise LockError."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder.job import Job, SourceName
from engine.builder.live_rows import LiveRows
from engine.builder.other_machines import OtherMachines
from engine.builder.sources import SourceReadings
from engine.builder.variant import PlannedVariant
from engine.errors import LockError, StepError, UserError
from engine.key import Key, digest_of, key_of, with_inputs
from engine.lockfile import differences, observe
from engine.lockfile.content import Lock, LockedOutput, OutputName, Rows, name_of, row_of
from engine.lockfile.differences import Difference
from engine.lockfile.observe import file_figures, is_measured
from engine.recipe.paths import is_on_hub
from engine.store.record import Record
from engine.store.store import Store
from engine.text import distribution

if TYPE_CHECKING:
    from engine.builder.live_rows import MachineRows
    from engine.step import Hardware


@dataclass(frozen=True)
class RecipeLock:
    """The lock of a recipe, and the variants of the recipe."""

    lock: Lock
    recipe: Path
    variants: tuple[PlannedVariant, ...]

    def variant_of(self, job: Job) -> PlannedVariant:
        """Return the variant of a job."""
        return next(each for each in self.variants if each.name == job.recipe)


class LockRows(LiveRows):
    """The rows of keys as this process computes them, and what locks say about the keys and outputs of jobs.

    A `--locked` build takes the figures of measurements, and results for hardware that this machine lacks, by the keys
    of the lock. A `--frozen` build takes every result so, and reads nothing for it. It has rows of this process only
    for a job that may run: the lock has an artifact of it, and its code and the sources of its recipe are the locked
    ones.
    """

    def __init__(self, store: Store, locks: Sequence[RecipeLock], *, is_frozen: bool) -> None:
        """Raises LockError if two locks have different commits of one hub revision."""
        super().__init__(store)
        self.sources = SourceReadings(store, pinned=_pinned(locks))
        if not is_frozen:
            self.required_tools = {name: value for own in locks for name, value in own.lock.tools.items()}
        self._store = store
        self._other_machines = OtherMachines(store)
        self._is_frozen = is_frozen
        self._locks: dict[str, RecipeLock] = {}
        self._here: dict[str, Mapping[OutputName, LockedOutput]] = {}
        for own in locks:
            here = own.lock.outputs_where(lambda facts: observe.holds(facts, self))
            for variant in own.variants:
                self._locks[variant.name], self._here[variant.name] = own, here

    def keys(self, job: Job, inputs: Mapping[str, str], *, waits_for: Hardware | None) -> Iterator[Key]:
        """Yield the keys that a lock allows for a job, first the one of this machine, and file the locked figures."""
        if not self._is_frozen and waits_for is None and not is_measured(job):
            return
        lock, outputs = self._locks[job.recipe].lock, self._outputs(job)
        for key in self._computed(job, inputs, sections=self._is_frozen or waits_for is not None):
            named = next((each for each in outputs if each.key == digest_of(key)), None)
            if named is not None:
                file_figures(self._store, self.machine, job, key, named)
            if named is not None or not outputs:
                yield key
        if self._is_frozen and waits_for is not None and not outputs:
            yield from self._fitting(job, inputs, waits_for)
        if lock.version != distribution.version():  # its keys may have other rows, so they cannot be computed
            records = (self._store.read(output.key) for output in outputs)
            yield from (record.key for record in records if record is not None)

    def own(self, job: Job, *, waits_for: Hardware | None, on: MachineRows | None) -> Key:
        """Return the rows as LiveRows does. Raises LockError for a job that a frozen build must not run."""
        if self._is_frozen:
            self._refuse_to_run(job)
        return super().own(job, waits_for=waits_for, on=on)

    def accept(self, job: Job, record: Record, *, waits_for: Hardware | None) -> None:
        """Raise LockError for another output than a lock names: for the key, or in a frozen build for the job.

        A locked output without an artifact is that of its key, whatever its bytes.
        """
        outputs = self._outputs(job)
        if not self._is_frozen and waits_for is None:
            outputs = [each for each in outputs if each == self._here_of(job) and each.key == record.digest]
        same_key = [each for each in outputs if each.key == record.digest]
        if not outputs or any(each.artifact in (None, record.artifact) for each in same_key):
            return
        if not same_key and any(each.artifact == record.artifact for each in outputs):
            return
        locked = (same_key or outputs)[0]
        kind, here = ("artifact", record.artifact) if locked.artifact else ("key", record.digest)
        why = f"the lock has another key than this record, which has {record.digest}: the tools or the machine differ"
        if same_key:
            why = "the inputs, tools and code are the same: the job's key is the locked key"
        raise LockError(
            f"the output of {job.name!r} of {job.recipe} differs from the locked output",
            [f"{kind} of {job.name} in {job.recipe}: locked {locked.artifact or locked.key}, here {here}", why],
            "bring the store or remote that has the locked output, or compare both; `recipe lock` accepts the new one",
        )

    def _outputs(self, job: Job) -> list[LockedOutput]:
        """Return what the lock names as outputs of a job, each for another kind of machine; this machine's is first."""
        outputs = self._locks[job.recipe].lock.outputs_of(job.recipe, job.name)
        return sorted(outputs, key=lambda each: each != self._here_of(job))

    def _here_of(self, job: Job) -> LockedOutput | None:
        return self._here[job.recipe].get((job.recipe, job.name))

    def _computed(self, job: Job, inputs: Mapping[str, str], *, sections: bool) -> Iterator[Key]:
        """Yield the keys of the lock's rows: with this machine's facts, and with `sections` also with all others."""
        lock, variant = self._locks[job.recipe].lock, self._locks[job.recipe].variant_of(job)
        code = lock.code_of(job.recipe, job.name)
        sources = {name: name_of(source, variant) for name, source in job.step.sources().items()}
        tools = set(job.step.tools_used())
        if code is None or not tools <= lock.tools.keys() or not set(sources.values()) <= lock.sources.keys():
            return
        rows = {
            row: row_of(source, value)
            for name, source in sources.items()
            for row, value in lock.source_rows(source, name).items()
        }
        for facts in self._facts(job, lock if sections else None):
            yield key_of(
                options=job.step.options(),
                code=code,
                inputs={**rows, **inputs},
                tools={tool: lock.tools[tool] for tool in tools},
                facts=facts,
                variables={name: lock.variables[name] for name in job.step.variables if name in lock.variables},
            )

    def _fitting(self, job: Job, inputs: Mapping[str, str], waits_for: Hardware) -> Iterator[Key]:
        """Yield the key of the one record that fits a job for other hardware, of which the lock has no key.

        Raises LockError if the job's code is not the locked code, and if several records fit.
        """
        self._refuse_other_code(self._locks[job.recipe], job, [])
        every = (self.sources.resolved(source).rows(name) for name, source in job.traits.sources.items())
        sources = {name: value for rows in every for name, value in rows.items()}
        key = with_inputs(super().own(job, waits_for=waits_for, on=None), {**sources, **inputs})
        fitting = [record.key for record in self._other_machines.fitting(key, waits_for)]
        if len(fitting) > 1:
            raise LockError(
                f"the lock names no output of {job.name!r} of {job.recipe}, and {len(fitting)} records fit the job",
                [f"key: {digest_of(each)}" for each in fitting],
                f"`recipe lock {self._locks[job.recipe].recipe}` on the machine that has the hardware names one",
            )
        yield from fitting

    def _facts(self, job: Job, lock: Lock | None) -> list[Rows]:
        """Return the facts that a job's key may have: first this machine's facts, then the facts in the lock."""
        used = job.step.facts_used()
        facts: list[Rows] = []
        with contextlib.suppress(KeyError):  # an unknown fact: the key of this machine reports it
            facts.append(self.facts(used, job.step.hardware()))
        for section in lock.machines if lock else ():
            theirs = {name: section.facts[name] for name in used if name in section.facts}
            if len(theirs) == len(set(used)) and theirs not in facts:
                facts.append(theirs)
        return facts

    def _refuse_to_run(self, job: Job) -> None:
        """Raise UserError for a job that is not stored, if its output could be another one than the lock names."""
        own, outputs = self._locks[job.recipe], self._outputs(job)
        lacking = [f"the store has no record of its locked key {each.key}" for each in outputs[:1]]
        if not any(output.artifact for output in outputs):
            or_else = "bring the store or the remote that has it" if outputs else "then `recipe lock` names its output"
            raise LockError(
                f"the lock names no output of {job.name!r} of {job.recipe}, and no output is stored under its key",
                lacking or ["the job was not built when the lock was written"],
                f"`recipe build --locked {own.recipe}` builds it where it can run; {or_else}",
            )
        self._refuse_other_code(own, job, lacking)
        self._refuse_other_sources(own, job, lacking)

    def _refuse_other_code(self, own: RecipeLock, job: Job, lacking: Sequence[str]) -> None:
        lock = own.lock
        if lock.code_of(job.recipe, job.name) == str(self.code(job.step)):
            return
        jobs = own.variant_of(job).jobs
        changed = [each.name for each in jobs if lock.code_of(job.recipe, each.name) != str(self.code(each.step))]
        facts = [*lacking, f"`recipe lock` would change {differences.code_of(changed)}"]
        if lock.version != distribution.version():
            facts.insert(0, f"the lock {differences.of_another_version(lock)}")
        raise LockError(
            f"{job.name!r} of {job.recipe} would run with other code than the lock names",
            facts,
            f"build with the locked version and code, or accept what is here: `recipe lock {own.recipe}`",
        )

    def _refuse_other_sources(self, own: RecipeLock, job: Job, lacking: Sequence[str]) -> None:
        """Raise LockError if any source of the recipe has other content than the lock names.

        A source that is missing fails only the job that reads it. A repository on a hub has its locked commit.
        """
        facts = []
        for name, source in _local_sources(own).items():
            try:
                here = self.sources.resolved(source).rows(name)
            except UserError as error:
                if source in job.traits.sources.values():
                    raise StepError(error.what, [*error.facts, *lacking], error.hint) from error
                continue
            locked = own.lock.source_rows(name, name)
            rows = sorted(row for row in locked.keys() | here.keys() if locked.get(row) != here.get(row))
            facts += [str(Difference(row, locked.get(row), here.get(row))) for row in rows]
        if facts:
            raise LockError(
                f"{job.name!r} of {job.recipe} would be built from other sources than the lock names",
                facts,
                f"take back the change, or accept it with `recipe lock {own.recipe}`",
            )


def _local_sources(own: RecipeLock) -> dict[str, SourceName]:
    """Return the files that the jobs of a recipe read, by their names in the lock."""
    return {
        name_of(source, variant): SourceName(source.uri, source.revision, source.part)
        for variant in own.variants
        for job in variant.jobs
        for source in job.step.sources().values()
        if not is_on_hub(source.uri)
    }


def _pinned(locks: Iterable[RecipeLock]) -> dict[str, str]:
    """Return the locks' commit of each hub revision, by `hf:REPO@REVISION`. Raises LockError where two differ."""
    pinned: dict[str, str] = {}
    for own in locks:
        for name, commit in own.lock.pins.items():
            if pinned.setdefault(name, commit) != commit:
                raise LockError(
                    f"the locks of these recipes have different commits of {name}",
                    [pinned[name], commit],
                    "build the recipes one at a time, or lock them anew with `recipe lock --refresh`",
                )
    return pinned
