"""The look-up: the keys of jobs, and the records that the store has for them, for every command."""

# A key is made of the job's own rows (code, options, tools, facts, variables), which a `RowSource` knows, and of the
# rows of its inputs. Four cases differ:
#
# - The job runs on this machine: the record is the one of exactly the key.
# - A lock names keys of the job: the first of them that has a record is the key.
# - The hardware of the job is not here: its own rows lack what only a machine with the hardware can say, and the record
#   of any such machine is taken (ADR 10).
# - The jobs run on a cluster: a job has a key for each kind of machine, and one with a record comes first (ADR 55).

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, final

from engine.builder.job import Job, SourceName, current_report
from engine.builder.sources import Resolved, SourceReadings, differs
from engine.facts import Known
from engine.key import Key, digest_of, inputs_of, with_inputs, without_inputs
from engine.store.heads import Heads
from engine.store.record import Record
from engine.store.stat_cache import Row
from engine.store.store import Store

if TYPE_CHECKING:
    from engine.builder.live_rows import MachineRows
    from engine.builder.other_machines import OtherMachines
    from engine.step import Hardware, Source


_THIS_MACHINE = ""
"""The kind of machine where there is no cluster."""


class Machines(Protocol):
    """The machines of a cluster, of which one will run a job. Machines of one kind give a job the same key."""

    def waits_for(self, job: Job) -> Hardware | None:
        """Return the hardware that a job needs and every machine lacks, or None."""

    def advice(self, hardware: Hardware) -> str:
        """Return what the machines have instead of some hardware, and what to do."""

    def kinds(self, job: Job, lane: Hashable = None) -> Sequence[str]:
        """Return the kinds of machines that can run a job, the best first. Raises StepError if there is none.

        `lane` is what the job needs of a machine, if its executor has said so: a kind with room for it comes first.
        """

    def rows(self, job: Job, kind: str) -> MachineRows:
        """Return the values of a kind of machine for a job."""


class RowSource(Protocol):
    """Where the rows of a job's own key come from: this process, the plan of the last build, or a lock."""

    @property
    def machine(self) -> Mapping[str, str]:
        """The facts about this machine that are written into each record that this machine makes."""

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why the code of tools may differ from what their versions promise, by the name of the tool."""

    @property
    def required_tools(self) -> Mapping[str, str]:
        """The values of the rows for tools that a lock demands; a machine with another value is not used."""

    def keys(self, job: Job, inputs: Mapping[str, str], *, waits_for: Hardware | None) -> Iterable[Key]:
        """Return the keys that a lock has for a job, whose records count first; `inputs` are those of other jobs."""

    def accept(self, job: Job, record: Record, *, waits_for: Hardware | None) -> None:
        """Raise LockError if a lock names another output of the job than that of `record`."""

    def own(self, job: Job, *, waits_for: Hardware | None, on: MachineRows | None) -> Key:
        """Return the rows of a job's key for code, options, tools, facts and environment variables.

        `waits_for` is the hardware that the job needs and this machine lacks; `on` has the values of another machine
        that is to run the job.
        """

    def code_read(self, job: Job) -> Iterable[tuple[Path, Row]]:
        """Return the files of a job's code with the stat rows that the files had when they were read."""

    def changed_tool(self, job: Job) -> Path | None:
        """Return a file of a job's tools that changed after the tools were looked up; None if no file changed."""

    def is_judged(self, job: Job, record: Record) -> bool:
        """Say whether an earlier build has read the record's report and judged it by the bounds of today."""

    def watched(self) -> Known:
        """Return all files, folders and environment variables that the rows depend on."""


@final
class Lookup:
    """Computes the keys of jobs and finds their records. Each source and each version of a tool is read only once."""

    def __init__(self, store: Store, rows: RowSource | None = None, *, sources: SourceReadings | None = None) -> None:
        """Without `rows`, the rows of keys are computed in this process, and without `sources` each source is read."""
        if rows is None:
            from engine.builder.live_rows import LiveRows

            rows = LiveRows(store)
        self.store = store
        self.rows = rows
        self.machines: Machines | None = None
        """The machines of a cluster on which the jobs run; None if they run on this machine."""
        self.heads = Heads(store.notes)
        self.sources = sources or SourceReadings(store)
        self._own_rows: dict[tuple[str, str, str], Key] = {}
        """The own rows of jobs, by the variant, the job and the kind of machine."""

    # -- keys -------------------------------------------------------------------------------------------------

    def key(self, job: Job, inputs: Mapping[str, str]) -> Key:
        """Return a job's key, given the rows of the inputs that other jobs make.

        For a job whose hardware this machine lacks, the key has no rows for facts, environment variables and the tool
        of the hardware. Raises UserError where a source cannot be found or resolved, and where a lock refuses the job.
        """
        waits_for = self.waits_for(job)
        for key in self.rows.keys(job, inputs, waits_for=waits_for):
            record = self._exact(job, key)
            if record is not None:
                self.rows.accept(job, record, waits_for=waits_for)
                return key
        return self.key_here(job, inputs)

    def key_here(self, job: Job, inputs: Mapping[str, str]) -> Key:
        """Return the key that a job has without a lock. Of several kinds of machines, one with a record comes first."""
        own = [self.own_rows(job, kind) for kind in self._kinds(job)]  # first, because here a lock refuses a job
        sources = self.source_rows(job)
        keys = [with_inputs(rows, {**sources, **inputs}) for rows in own]
        if len(keys) == 1:
            return keys[0]
        return next((key for key in keys if self.find(job, key) is not None), keys[0])

    def placed(self, job: Job, key: Key, lane: Hashable = None) -> Key:
        """Return the key of a job that is to run now, for the kind of machine that suits the job best at present.

        `lane` is what the job needs of a machine, if its executor has said so. Raises LockError for a job that its lock
        does not let run.
        """
        own = self.own_rows(job, self._kinds(job, lane)[0])
        return key if own == without_inputs(key) else with_inputs(own, inputs_of(key))

    def own_rows(self, job: Job, kind: str = _THIS_MACHINE) -> Key:
        """Return the rows of a job's key for code, options, tools, facts and environment variables.

        `kind` is the kind of machine that is to run the job. Raises StepError for a fact that no module declares.
        """
        name = job.recipe, job.name, kind
        if name not in self._own_rows:
            machine = None if self.machines is None or kind == _THIS_MACHINE else self.machines.rows(job, kind)
            self._own_rows[name] = self.rows.own(job, waits_for=self.waits_for(job), on=machine)
        return self._own_rows[name]

    def source_rows(self, job: Job) -> dict[str, str]:
        """Return the values of a job's sources and of their parts in the job's key."""
        every = (self.source(source).rows(name) for name, source in job.traits.sources.items())
        return {name: value for rows in every for name, value in rows.items()}

    def source(self, source: Source | SourceName) -> Resolved:
        """Return the location of a source, and the digest or commit of the source's content."""
        return self.sources.resolved(SourceName(source.uri, source.revision, source.part))

    # -- records ----------------------------------------------------------------------------------------------

    def find(self, job: Job, key: Key) -> Record | None:
        """Return the record of a job, or None.

        For a job whose hardware this machine lacks, it is the latest record of a machine with that hardware. A record
        with an unreadable report counts as missing, so that the job runs again. For a hermetic recipe, so does a record
        without a trace.
        """
        waits_for = self.waits_for(job)
        if waits_for is None:
            return self._exact(job, key)
        # Without the rows of the hardware's machine, a key has no record; a lock names a whole key, which may have one.
        if self.store.read(digest_of(key)) is not None and (record := self._exact(job, key)) is not None:
            return record
        readable = (self._exact(job, each.key) for each in self.other_machines.fitting(key, waits_for))
        return next((record for record in readable if record is not None), None)

    def _exact(self, job: Job, key: Key) -> Record | None:
        """Return the record of exactly this key, or None."""
        record = self.store.find(key)
        if record is not None and job.hermetic and not record.trace:
            return None
        if record is None or self.rows.is_judged(job, record):
            return record
        if not job.traits.reads_report and record.report_version == job.traits.report_version:
            return record
        return current_report(type(job.step), record)

    @cached_property
    def other_machines(self) -> OtherMachines:
        """The finder of records from other machines, for jobs whose hardware this machine lacks."""
        from engine.builder.other_machines import OtherMachines

        return OtherMachines(self.store)

    def accept(self, job: Job, record: Record) -> None:
        """Raise UserError if this build must not use `record` as the record of `job`, because of a lock."""
        self.rows.accept(job, record, waits_for=self.waits_for(job))

    def changed_meanwhile(self, job: Job) -> Path | None:
        """Return a file of a job's sources or code that changed after the file was read; None if no file changed.

        A worker imports a step when the job starts, perhaps long after the key was computed.
        """
        changed = (path for path, row in self.rows.code_read(job) if not path.is_dir() and differs(path, row))
        sources = job.traits.sources.values()
        return next(changed, None) or self.sources.changed_file(sources) or self.rows.changed_tool(job)

    # -- machines ---------------------------------------------------------------------------------------------

    def waits_for(self, job: Job) -> Hardware | None:
        """Return the hardware that a job needs and this machine, or every machine of the cluster, lacks; or None."""
        if not job.traits.needs_hardware:
            return None
        if self.machines is not None:
            return self.machines.waits_for(job)
        from engine.builder import facts

        hardware = job.step.hardware()
        return None if hardware is None or facts.can_run(hardware) else hardware

    def advice(self, hardware: Hardware) -> str:
        """Return what there is instead of the hardware that a job waits for, and what to do."""
        if self.machines is not None:
            return self.machines.advice(hardware)
        from engine.runtimes import requirements

        lack = requirements.lack(hardware)
        return lack.advice if lack else ""

    def look_at_machines_again(self) -> None:
        """Forget the rows of keys that depend on machines, because machines came or left."""
        self._own_rows.clear()

    def _kinds(self, job: Job, lane: Hashable = None) -> Sequence[str]:
        """Return the kinds of machines that can run a job, the best first."""
        if self.machines is None or self.waits_for(job) is not None:
            return (_THIS_MACHINE,)
        return self.machines.kinds(job, lane)


def content_of(maker: Job, record: Record) -> str:
    """Return the value that stands for a job's output in the keys of later jobs.

    The returned value is the digest of the job's artifact, if the step is reproducible or its report is in locks. Else
    the value names the key that the output was made for, so that all outputs for one key have the same value.
    """
    return str(record.artifact) if maker.traits.has_own_content else under(record.digest)


def under(key: str) -> str:
    """Return the text that names the key of an output; keys of later jobs have it if the output is not reproducible."""
    return f"made under {key}"
