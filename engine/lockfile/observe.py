"""Make the lock of a recipe from this machine: sources, tools, code and jobs, outputs and measured figures."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.builder.job import Job
from engine.builder.live_rows import LiveRows
from engine.builder.lookup import Lookup, under
from engine.builder.variant import PlannedVariant
from engine.errors import LockError
from engine.key import Key, digest_of, option_rows, text_of
from engine.lockfile.content import (
    Lock,
    LockedJob,
    LockedOutput,
    LockedVariant,
    OutputName,
    Rows,
    name_of,
    name_of_part,
    own_code,
    recipe_rows,
    sections,
)
from engine.machine import local_gpus
from engine.recipe.paths import is_on_hub
from engine.step import Hardware, Source, write_report
from engine.store import output
from engine.store.store import Store
from engine.text import distribution

_NOT_LOOKED_UP = "not looked up"


def observe(
    variants: Sequence[PlannedVariant], lookup: Lookup, live: LiveRows, locked: Lock | None, *, ask: bool
) -> Lock:
    """Return the lock that describes all variants of one recipe on this machine.

    The rows of tools and environment variables that only jobs for other hardware use are those of the lock `locked`.
    If the store lacks an artifact, the artifact's digest is taken from the lock `locked`, provided that the job's key
    is the same there. If `ask` is true, a hub is asked for the commit of each revision. If `ask` is false, a commit
    that is not in the lock `locked` stays unknown. Raises UserError where a source is missing.
    """
    before = locked or Lock({}, {}, {}, {})
    walk = _Walk(lookup, live, before, ask=ask)
    locked_variants = {variant.name: walk.variant(variant) for variant in variants}
    elsewhere = walk.elsewhere - walk.tools - walk.variables
    return Lock(
        sources=walk.sources,
        tools={**_of(elsewhere, before.tools), **live.tools(walk.tools)},
        steps=walk.steps,
        variants=locked_variants,
        machines=sections(walk.outputs),
        variables={**_of(elsewhere, before.variables), **live.variables(walk.variables)},
        version=distribution.version(),
    )


def planned(variants: Sequence[PlannedVariant], locked: Lock) -> Lock:
    """Return the lock `locked` with the recipe and the jobs that are planned here, and without outputs.

    Jobs of another version of this program may have other options, so they stay as they are locked.
    """
    jobs = {
        variant.name: {
            job.name: _locked_job(job, {name: name_of(each, variant) for name, each in job.step.sources().items()})
            for job in variant.jobs
        }
        for variant in variants
    }
    if locked.version != distribution.version():
        jobs = {name: dict(variant.jobs) for name, variant in locked.variants.items()}
    planned_variants = {each.name: LockedVariant(recipe_rows(each), jobs.get(each.name, {})) for each in variants}
    return replace(locked, variants=planned_variants, machines=())


def _of(names: Collection[str], rows: Rows) -> Rows:
    return {name: value for name, value in rows.items() if name in names}


def holds(facts: Rows, live: LiveRows) -> bool:
    """Say whether facts hold for this machine; `live` watches from then on the files that they were read from."""
    device = {name: value for name, value in facts.items() if name.startswith(local_gpus.DEVICE)}
    others = {name: value for name, value in facts.items() if name not in device}
    try:
        if live.facts(others, None) != others:
            return False
        if device:
            live.note(local_gpus.known(local_gpus.names()))
        return not device or local_gpus.has(device)
    except KeyError:
        return False  # a fact of another version of this program


_LOG = b"the figures are those of the lock; nothing was measured\n"


def report_rows(job: Job, report: Mapping[str, object]) -> dict[str, str]:
    """Return the part of a job's report that a lock has, a row for each field or entry: an empty mapping has one."""
    rows: dict[str, str] = {}
    for name in job.step.in_lock:
        value = report.get(name)
        if isinstance(value, Mapping) and value:
            rows |= {f"{name}.{entry}": text_of(each) for entry, each in value.items()}
        elif value is not None:
            rows[name] = text_of(value)
    return rows


def report_of(rows: Mapping[str, str]) -> dict[str, object]:
    """Return the report that rows of a lock describe: the opposite of `report_rows`."""
    report: dict[str, Any] = {}
    for row, text in rows.items():
        name, _, entry = row.partition(".")
        if entry:
            report.setdefault(name, {})[entry] = _value(text)
        else:
            report[name] = _value(text)
    return report


def is_measured(job: Job) -> bool:
    """Return whether a build with a lock takes the job's output from the lock, because another run would differ."""
    return bool(job.step.in_lock) and not job.traits.reproducible


def file_figures(store: Store, machine: Mapping[str, str], job: Job, key: Key, locked: LockedOutput) -> None:
    """Write the record of a measured job with the locked report into the store, unless the store has it.

    Nothing is written for any other job, and where the lock has no report. `key` is the locked key, and `machine` are
    the facts about this machine. Raises LockError where the report in the lock is not the one that the artifact in the
    lock was made from.
    """
    if not is_measured(job) or not locked.report:
        return
    record = store.find(key)
    if record is not None and record.artifact == locked.artifact:
        return
    report = report_of(locked.report)
    with store.presence.workplace() as folder:
        write_report(folder / "out", report)
        files = output.take(folder / "out")
        if output.tree(files) != locked.artifact:
            raise LockError(
                f"the figures of {job.name!r} in the lock of {job.recipe} were edited",
                [f"artifact of {job.name}: locked {locked.artifact}, from the locked figures {output.tree(files)}"],
                "take back the edit, or measure again: `recipe build`, then `recipe lock`",
            )
        step = job.traits.kind
        store.commit(
            key,
            folder / "out",
            files,
            report=report,
            report_version=job.traits.report_version,
            seconds=0.0,
            peak_bytes=0,
            machine=machine,
            log=_LOG,
            job=job.name,
            step=step,
            bound=output.binding(step=step, key=digest_of(key), tree=output.tree(files), report=report),
        )


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass(frozen=True)
class _Reach:
    """What a job's output depends on, directly or through the jobs whose outputs the job reads."""

    facts: frozenset[str]
    """The names of the facts that this job, and the jobs that it is made from, depend on."""
    waits_for: bool
    """Whether the job, or a job that it is made from, waits for hardware that this machine lacks."""
    content: str | None
    """The output as a row in the keys of later jobs; None where it is unknown or differs from build to build."""
    varies: bool
    """Whether the bytes of the job's output, or of an output that it is made from, differ from build to build."""
    hardware: Hardware | None
    """The hardware that this job, or a job that it is made from, must run on; None for any machine."""


class _Walk:
    """One pass over the jobs of all variants, in the order of their plans, which gathers the content of a lock."""

    def __init__(self, lookup: Lookup, live: LiveRows, locked: Lock, *, ask: bool) -> None:
        self.lookup = lookup
        self.live = live
        self.ask = ask
        self.commits = locked.sources
        self.before = locked.outputs_where(lambda facts: holds(facts, live))
        self.sources: dict[str, str] = {}
        self.tools: set[str] = set()
        self.variables: set[str] = set()
        self.elsewhere: set[str] = set()
        self.steps: dict[str, str] = {}
        self.outputs: list[tuple[Rows, OutputName, LockedOutput]] = []

    def variant(self, variant: PlannedVariant) -> LockedVariant:
        """Collect the sources, tools and code of a variant's jobs; return the lock's form of the variant."""
        reaches: dict[str, _Reach] = {}
        jobs: dict[str, LockedJob] = {}
        for job in variant.jobs:
            reads = {name: name_of(source, variant) for name, source in job.step.sources().items()}
            unknown = [name for name, source in job.step.sources().items() if not self._read(reads[name], source)]
            needed = {name: reaches[maker] for name, maker in job.needs.items()}
            facts = frozenset(job.step.facts_used()).union(*(each.facts for each in needed.values()))
            waits_for = self.lookup.waits_for(job) is not None or any(each.waits_for for each in needed.values())
            code = str(self.live.code(job.step))
            if self.steps.setdefault(job.name, code) != code:
                self.steps[own_code(variant.name, job.name)] = code
            if waits_for:
                self.elsewhere.update(job.step.tools_used(), job.step.variables)
            else:
                self.tools.update(job.step.tools_used())
                self.variables.update(job.step.variables)
            inputs = {name: each.content for name, each in needed.items() if each.content is not None}
            hardware = next(filter(None, (job.step.hardware(), *(each.hardware for each in needed.values()))), None)
            varies = not job.traits.has_own_content or (
                any(each.varies for each in needed.values()) and not is_measured(job)
            )
            output = None
            if not unknown and not waits_for and len(inputs) == len(needed):
                output = self._look_up(job, inputs, varies=varies)
            reaches[job.name] = _Reach(facts, waits_for, _content(job, output), varies, hardware)
            if output is not None and facts:
                self.outputs.append((self.live.facts(facts, hardware), (variant.name, job.name), output))
            jobs[job.name] = _locked_job(job, reads, None if facts else output)
        return LockedVariant(recipe_rows(variant), jobs)

    def _read(self, name: str, source: Source) -> bool:
        """Add a source's digest or commit to the lock; return False if the commit is unknown and no hub is asked."""
        if is_on_hub(source.uri) and not self.ask and name not in self.commits:
            self.sources[name] = _NOT_LOOKED_UP
            return False
        resolved = self.lookup.source(source)
        self.sources[name] = resolved.row.rpartition("@")[2] if is_on_hub(source.uri) else resolved.row
        self.sources |= {name_of_part(name, part): value for part, value in resolved.parts.items()}
        return True

    def _look_up(self, job: Job, inputs: Mapping[str, str], *, varies: bool) -> LockedOutput:
        """Return the digest of a job's key with the artifact that the store, or else the lock, has for the key.

        The artifact is left out of the returned LockedOutput if the bytes of the job's output differ from build to
        build, and their content is no row of later keys. A measurement of such bytes is locked as any other.
        """
        key = self.lookup.key_here(job, inputs)
        digest = str(digest_of(key))
        if varies and not job.step.in_lock:
            return LockedOutput(digest)
        before = self.before.get((job.recipe, job.name))
        locked = before if before is not None and before.key == digest else LockedOutput(digest)
        if locked.report and is_measured(job) and not self.ask:
            return locked  # a build with the lock takes its figures, whatever the store has
        record = self.lookup.store.find(key)
        if record is None:
            return locked
        return LockedOutput(digest, None if varies else str(record.artifact), report_rows(job, record.report))


def _locked_job(job: Job, reads: Rows, output: LockedOutput | None = None) -> LockedJob:
    options = {row.removeprefix("options."): value for row, value in option_rows(job.step.options()).items()}
    return LockedJob(job.needs, reads, job.gates, options, output)


def _content(job: Job, output: LockedOutput | None) -> str | None:
    if output is None:
        return None
    return output.artifact if job.traits.has_own_content else under(output.key)
