"""Compute the keys of jobs and find their records, in the same way for `build`, `why` and `show`."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from engine.builder.job import Job, SourceName
from engine.builder.source_readings import SourceReadings, differs
from engine.digest import Digest
from engine.errors import StepError
from engine.key import Key, inputs_of, key_of, with_inputs, without_inputs
from engine.known import Known
from engine.store.heads import Heads
from engine.store.record import Record
from engine.store.stat_cache import Row, row_of
from engine.store.store import Store
from engine.text import redaction

if TYPE_CHECKING:
    from types import ModuleType

    from engine.builder.code.closure import Code
    from engine.builder.elsewhere import Elsewhere
    from engine.builder.sources import Resolved
    from engine.builder.tools import Tools
    from engine.step import Hardware, Source, Step


_HERE = ""
"""The kind of this machine."""


class MachineRows(NamedTuple):
    """The values of a machine that become rows of a job's key."""

    tools: Mapping[str, str]
    facts: Mapping[str, str]
    variables: Mapping[str, str]


class Machines(Protocol):
    """The machines of a cluster, of which one will run a job. Machines of one kind give a job the same key."""

    def away(self, job: Job) -> Hardware | None:
        """Return the hardware that a job needs and every machine lacks, or None."""

    def advice(self, hardware: Hardware) -> str:
        """Return what the machines have instead of some hardware, and what to do."""

    def kinds(self, job: Job, lane: Hashable = None) -> Sequence[str]:
        """Return the kinds of machines that can run a job, the best first. Raises StepError if there is none.

        `lane` is what the job needs of a machine, if its executor has said so: a kind with room for it comes first.
        """

    def rows(self, job: Job, kind: str) -> MachineRows:
        """Return the values of a kind of machine for a job."""


class Lookup:
    """A look-up computes the keys of jobs and finds their records in the store.

    A look-up reads each source and each version of a tool only once.
    """

    def __init__(self, store: Store, *, refresh: bool = False, pinned: Mapping[str, str] | None = None) -> None:
        """`pinned` maps "hf:REPO@REVISION" to a commit, so that the hub is not asked for the revision's commit."""
        self.store = store
        self.machines: Machines | None = None
        """The machines of a cluster on which the jobs run; None if they run on this machine."""
        self.locked_tools: Mapping[str, str] = {}
        """The values of the rows for tools that a lock demands, by tool; a machine with another value is not used."""
        self.heads = Heads(store.notes)
        self._sources = SourceReadings(store, refresh=refresh, pinned=pinned or {})
        self._seen: dict[Known, None] = {}
        self._own: dict[tuple[str, str, str], Key] = {}

    def key(self, job: Job, inputs: Mapping[str, str]) -> Key:
        """Return a job's key, given the rows of the inputs that other jobs make.

        For a job whose hardware this machine lacks, the key has no rows for facts, environment variables and the tool
        of the hardware. Raises UserError where a source cannot be found or resolved.
        """
        content = {name: self.source(source).row for name, source in job.traits.sources.items()}
        every = {**content, **inputs}
        kinds = self.kinds(job)
        for kind in kinds[:-1]:
            key = with_inputs(self.own_rows(job, kind), every)
            if self.find(job, key) is not None:
                return key
        last = with_inputs(self.own_rows(job, kinds[-1]), every)
        return last if len(kinds) > 1 and self.find(job, last) is not None else self.placed(job, last)

    def kinds(self, job: Job, lane: Hashable = None) -> Sequence[str]:
        """Return the kinds of machines that can run a job, the best first; `_HERE` for this machine."""
        return (_HERE,) if self.machines is None or self.away(job) is not None else self.machines.kinds(job, lane)

    def placed(self, job: Job, key: Key, lane: Hashable = None) -> Key:
        """Return a job's key for the kind of machine that suits the job best at present.

        `lane` is what the job needs of a machine, if its executor has said so.
        """
        if self.machines is None:
            return key
        own = self.own_rows(job, self.kinds(job, lane)[0])
        return key if own == without_inputs(key) else with_inputs(own, inputs_of(key))

    def look_at_machines_again(self) -> None:
        """Forget the rows of keys that depend on machines, because machines came or left."""
        self._own.clear()

    def own_rows(self, job: Job, kind: str = _HERE) -> Key:
        """Return the rows of a job's key for code, options, tools, facts and environment variables.

        `kind` is the kind of machine that is to run the job. Raises StepError for a fact that no module declares.
        """
        place = job.recipe, job.name, kind
        if place not in self._own:
            self._own[place] = self._own_rows(job, kind)
        return self._own[place]

    def _own_rows(self, job: Job, kind: str) -> Key:
        from engine.builder import facts

        step = job.step
        if kind != _HERE and self.machines is not None:
            rows = self.machines.rows(job, kind)._asdict()
            return key_of(options=step.options(), code=self.code(step), inputs={}, **rows)
        away = self.away(job)
        try:
            known = self.facts(step.facts_used(), step.hardware()) if away is None else {}
        except KeyError as unknown:
            raise StepError(
                f"the step {job.name!r} depends on a fact that no module declares: {unknown}",
                [f"facts: {', '.join(facts.describing())}"],
            ) from None
        return key_of(
            options=step.options(),
            code=self.code(step),
            inputs={},
            tools=self.tools(tool for tool in step.tools_used() if away is None or tool not in away.tools),
            facts=known,
            variables=self.variables(step.variables if away is None else ()),
        )

    def find(self, job: Job, key: Key) -> Record | None:
        """Return the record of a job, or None.

        For a job whose hardware this machine lacks, a record from a machine with that hardware is returned. A record
        with an unreadable report counts as missing, so that the job runs again. For a hermetic recipe, so does a record
        without a trace.
        """
        away = self.away(job)
        return self._read(job, key) if away is None else next(self.from_elsewhere(job, key, away), None)

    def from_elsewhere(self, job: Job, key: Key, away: Hardware) -> Iterator[Record]:
        """Yield the records of a job from machines with the hardware `away`, the latest first."""
        if self.store.tier is not None:
            self.store.tier.gather(key)
        readable = (self._read(job, each.key) for each in self.elsewhere.fitting(key, away))
        return (record for record in readable if record is not None)

    def _read(self, job: Job, key: Key) -> Record | None:
        record = self.store.find(key)
        if record is not None and job.hermetic and not record.trace:
            return None
        if record is None or self.is_judged(job, record):
            return record
        if not job.traits.reads_report and record.report_version == job.traits.report_version:
            return record
        from engine.builder import reports

        return reports.current(type(job.step), record)

    def away(self, job: Job) -> Hardware | None:
        """Return the hardware that a job needs and this machine, or every machine of the cluster, lacks; or None."""
        if not job.traits.needs_hardware:
            return None
        if self.machines is not None:
            return self.machines.away(job)
        from engine.builder import facts

        hardware = job.step.hardware()
        if hardware is None:
            return None
        for known in facts.needed_by(hardware):
            self.note(known)
        return None if facts.can_run(hardware) else hardware

    def advice(self, away: Hardware) -> str:
        """Return what there is instead of the hardware that a job needs, and what to do."""
        if self.machines is not None:
            return self.machines.advice(away)
        from engine.builder import lacking

        lack = lacking.lack(away)
        return lack.advice if lack else ""

    def note(self, known: Known) -> str:
        """Return the value of a fact, and remember which files and environment variables the value depends on."""
        self._seen[known] = None
        return known.value

    def facts(self, names: Iterable[str], hardware: Hardware | None) -> dict[str, str]:
        """Return the values of facts by the names of the facts.

        Raises KeyError for an undeclared fact, and for a GPU that this machine lacks.
        """
        from engine.builder import facts

        return {name: self.note(facts.of(name, hardware)) for name in names}

    def tools(self, names: Iterable[str]) -> dict[str, str]:
        """Return the installed version of each distribution, or `tools.MISSING`, by the distribution's name.

        If the code of a distribution may differ from what its version promises, the value also has a digest of the
        code.
        """
        return {name: self.note(self._tools.known(name)) for name in names}

    def tool_reasons(self) -> Mapping[str, str]:
        """Return why the code of tools may differ from what their versions promise, by the name of the tool."""
        return self._tools.reasons

    def variables(self, names: Iterable[str]) -> dict[str, str]:
        """Return the values of environment variables by name; a variable that is not set is left out.

        A value that is a secret is a digest here: records, locks and texts have these values.
        """
        seen = {name: self.note(Known(os.environ.get(name, ""), variables=(name,))) for name in names}
        shown = {name: redaction.digest(value) if redaction.is_secret(name) else value for name, value in seen.items()}
        return {name: value for name, value in shown.items() if name in os.environ}

    def code(self, step: Step) -> Digest:
        """Return the digest of the code that a step with its options runs."""
        step_code = self._code_of(step)
        self.note(Known(step_code.digest, tuple(map(str, step_code.watched))))
        return step_code.digest

    def _code_of(self, step: Step) -> Code:
        code: Code = self._closure.of_step(step)
        return code

    @cached_property
    def _closure(self) -> ModuleType:
        """The module that computes the code of steps, which has forgotten modules that changed before this build."""
        from engine.builder.code import closure

        closure.forget_changed()
        return closure

    @cached_property
    def _tools(self) -> Tools:
        from engine.builder.tools import Tools

        return Tools(afresh=self.store.contents.afresh)

    @cached_property
    def elsewhere(self) -> Elsewhere:
        """The finder of records from other machines, for jobs whose hardware this machine lacks."""
        from engine.builder.elsewhere import Elsewhere

        return Elsewhere(self.store)

    @cached_property
    def machine(self) -> Mapping[str, str]:
        """The facts about this machine that are written into each record that this machine makes."""
        return self.describe_machine()

    def describe_machine(self) -> Mapping[str, str]:
        """Return the facts that describe this machine."""
        from engine.builder import facts

        return facts.describing()

    def source(self, source: Source | SourceName) -> Resolved:
        """Return the location of a source, and the digest or commit of the source's content."""
        return self._sources.resolved(SourceName(source.uri, source.revision, source.part))

    def is_judged(self, job: Job, record: Record) -> bool:
        """Say whether an earlier build has read the record's report and judged it by the bounds of today.

        In the base class, no record is judged yet.
        """
        del job, record
        return False

    def accept(self, job: Job, record: Record) -> None:
        """Raise UserError if this build must not use `record` as the record of `job`.

        The method of the base class never raises an error.
        """

    def changed_meanwhile(self, job: Job) -> Path | None:
        """Return a file of a job's sources or code that changed after the file was read; None if no file changed.

        A worker imports a step when the job starts, perhaps long after the key was computed.
        """
        changed = (path for path, row in self.code_read(job) if not path.is_dir() and differs(path, row))
        return next(changed, None) or self.changed_source(job) or self.changed_tool(job)

    def changed_source(self, job: Job) -> Path | None:
        """Return a file of a job's sources that changed after it was read; None if no file changed."""
        return self._sources.changed_file(job.traits.sources.values())

    def changed_tool(self, job: Job) -> Path | None:
        """Return a file of a job's tools that changed after the tools were looked up; None if no file changed."""
        return self._tools.changed(job.traits.tools)

    def source_changed(self) -> bool:
        """Say whether a file of any source changed after the file was read."""
        return self._sources.changed_file() is not None

    def code_read(self, job: Job) -> Iterable[tuple[Path, Row]]:
        """Yield the files of a job's code with the stat rows that the files had when they were read."""
        return ((path, row_of(before)) for path, before in self._code_of(job.step).before.items())

    def source_rows(self, source: SourceName) -> Mapping[str, Row]:
        """Return the files of a source with the stat rows that the files had before they were read."""
        return {str(path): row for path, row in self._sources.rows(source).items()}

    def watched(self) -> Known:
        """Return all files, folders and environment variables that the keys depend on."""
        sources = map(str, self._sources.files())
        machine = self.watched_machine()
        return Known("", tuple(dict.fromkeys((*sources, *machine.paths))), machine.variables)

    def watched_machine(self) -> Known:
        """Return all files, folders and environment variables that the keys depend on, except the files of sources."""
        paths = (path for known in self._seen for path in known.paths)
        variables = (name for known in self._seen for name in known.variables)
        return Known("", tuple(dict.fromkeys(paths)), tuple(dict.fromkeys(variables)))


def content_of(maker: Job, record: Record) -> str:
    """Return the value that stands for a job's output in the keys of later jobs.

    The returned value is the digest of the job's artifact, if the step is reproducible or its report is in locks. Else
    the value names the key that the output was made for, so that all outputs for one key have the same value.
    """
    return str(record.artifact) if maker.traits.has_own_content else under(record.digest)


def under(key: str) -> str:
    """Return the text that names the key of an output; keys of later jobs have it if the output is not reproducible."""
    return f"made under {key}"
