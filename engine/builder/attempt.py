"""One run of a job: its file lock, its staging folder and its log, from the worker's task to the record."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from engine.builder import remake
from engine.builder.executors.executor import LackingInputError, RunOrder
from engine.builder.inputs import RunInputs
from engine.builder.trace import gaps, reads
from engine.builder.trace.coverage import encoded_trace, trace_of_run
from engine.builder.worker_task import Outcome, WorkerTask
from engine.errors import StepError, UserError
from engine.key import digest_of
from engine.store import output
from engine.store.disk import explained
from engine.store.notes import kept_name
from engine.store.record import Record
from engine.system import regular
from engine.system.file_systems import MountEvents
from engine.text import redaction

if TYPE_CHECKING:
    from engine.builder.job import Job


@dataclass(frozen=True)
class Attempt:
    """One run of a job in a worker.

    `close` releases the file lock of the job's key and removes the attempt's folder, after a success and after a
    failure.
    """

    order: RunOrder
    task: WorkerTask
    cleanup: contextlib.ExitStack
    inputs: RunInputs
    """What the job reads, as it was when the run began."""

    @classmethod
    def prepare(cls, order: RunOrder, mounts: MountEvents) -> Self:
        """Return an Attempt, with a new folder for the job's output and log.

        Raises LackingInputError for an input that is not in the store and cannot be brought, and StoreError.
        """
        lookup, job, key, taken = order.lookup, order.job, order.key, order.inputs
        store = lookup.store
        with contextlib.ExitStack() as resources, explained(store.root):
            resources.callback(order.lock.release)
            for name, record in taken.items():
                if not store.bring(record):
                    raise LackingInputError([name])
            folder = resources.enter_context(store.presence.workplace())
            cleanup = resources.pop_all()
        traits = job.traits
        places = {name: str(lookup.source(source).location) for name, source in traits.sources.items()}
        places.update({name: str(store.artifact_path(record.artifact)) for name, record in taken.items()})
        task = WorkerTask(
            step=traits.work,
            name=job.name,
            options=traits.options,
            inputs=places,
            out=str(folder / "out"),
            log=str(folder / "log"),
            key=digest_of(key),
            gpu=_gpu_of(job) if traits.needs_hardware else "",
            flushes=store.flushes,
        )
        if traits.kept_by:
            store.notes.lend(kept_name(job.name, traits.kept_by, key), _kept_file(folder))
        return cls(order, task, cleanup, RunInputs(store, taken, _paths_of(order, places), mounts))

    @property
    def node(self) -> str:
        """The name of the machine that runs the job: "" stands for this machine."""
        return ""

    @property
    def log(self) -> Path:
        """The path of the running job's log."""
        return Path(self.task.log)

    def record(self, outcome: Outcome) -> Record:
        """File the worker's output in the store, as an artifact and a record.

        Raises UserError if the worker failed, or if an input changed during the run.
        """
        self.check(outcome)
        order, store = self.order, self.order.lookup.store
        trace = trace_of_run(order.lookup, order.job, order.key, order.inputs, self.log.parent)
        gaps.refuse_uncovered_code(order.job.name, trace.gaps)
        traits = order.job.traits
        if traits.kept_by:
            name = kept_name(order.job.name, traits.kept_by, order.key)
            store.notes.take(name, _kept_file(Path(self.task.out).parent))
        return store.commit(
            order.key,
            Path(self.task.out),
            outcome.files,
            report=outcome.report or {},
            report_version=traits.report_version,
            seconds=outcome.seconds,
            peak_bytes=outcome.peak_bytes,
            anonymous_bytes=outcome.anonymous_bytes,
            machine=order.lookup.rows.machine,
            log=self._redacted_log(),
            job=order.job.name,
            step=self.task.step,
            bound=outcome.binding,
            trace=encoded_trace(trace),
            gaps=tuple(asdict(gap) for gap in trace.gaps),
        )

    def compare(self, outcome: Outcome, stored: Record, *, keep: Path) -> None:
        """Raise UserError if the worker failed, and StepError if its output differs from a stored record's.

        Both outputs are then kept in the folder `keep`.
        """
        self.check(outcome)
        store = self.order.lookup.store
        remake.refuse_differences(store, stored, self.order.job, Path(self.task.out), outcome.files, keep=keep)

    def check(self, outcome: Outcome) -> None:
        """Raise UserError if the worker failed, or if an input changed during the run."""
        try:
            # A step fails for the reason that its source or input is not what it was: the reason comes first.
            self._refuse_changed_files(self.order.lookup.changed_meanwhile(self.order.job))
            self.inputs.refuse_damaged(self.order.job.name)
            self._refuse_changed_files(self.inputs.changed_way())
            if outcome.error is not None:
                raise outcome.error
            self._refuse_foreign_answer(outcome)
        except UserError:
            with contextlib.suppress(OSError):  # the error is reported in any case
                self.order.lookup.store.keep_log(digest_of(self.order.key), self._redacted_log(), failed=True)
            raise

    def close(self) -> None:
        """Delete the folder and the log of this run of the job, and release the lock of the job's key."""
        for name in (self.log.name, reads.FILE_NAME):
            self.log.with_name(name).unlink(missing_ok=True)
        self.cleanup.close()  # an empty folder is removed faster

    def _redacted_log(self) -> bytes:
        """Return the job's log, with `[redacted]` in the place of secrets."""
        try:
            return redaction.redacted_bytes(regular.read(self.log))
        except OSError:
            return b""

    def _refuse_foreign_answer(self, outcome: Outcome) -> None:
        """Raise StepError for an output or a report that was not made for this key and this step."""
        key = digest_of(self.order.key)
        own = output.binding(step=self.task.step, key=key, tree=output.tree(outcome.files), report=outcome.report or {})
        if outcome.binding != own:
            raise StepError(
                f"the answer to {self.order.job.name!r} belongs to another job",
                ["the output was thrown away: it was made for another key or by another step"],
                "build again, and report the error if it comes back",
            )

    def _refuse_changed_files(self, changed: Path | str | None) -> None:
        """Raise StepError if a file, or something on the way to a file, changed during the run."""
        if changed is not None:
            raise StepError(
                f"{changed} changed while {self.order.job.name!r} was reading it",
                ["the result was thrown away: it belongs to neither the old nor the new content"],
                "build again when nothing changes the file any more",
            )


def _paths_of(order: RunOrder, places: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths of everything that a job reads on this machine; `places` are its inputs."""
    lookup, traits = order.lookup, order.job.traits
    yield from filter(os.path.isabs, places.values())
    for name, record in order.inputs.items():
        yield from (os.path.join(places[name], file) for file in record.files)
    yield from lookup.sources.files(traits.sources.values())
    yield from (str(path) for path, _ in lookup.rows.code_read(order.job))
    if traits.tools:
        yield from filter(os.path.isdir, map(os.path.abspath, sys.path))


def _gpu_of(job: Job) -> str:
    """Return the driver's name of the GPU on which a job runs; "" for a job that runs on none."""
    from engine.machine import local_gpus

    return local_gpus.name_of(job.step.hardware())


def _kept_file(folder: Path) -> Path:
    """Return the path at which a step in the working folder `folder` finds and leaves its kept file."""
    from engine.step import KEPT

    return folder / KEPT
