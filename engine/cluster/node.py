"""What a node does: it answers surveys, and runs one job at a time in a worker process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.builder import facts
from engine.builder.executors.executor import LackingInputError, RunOrder
from engine.builder.executors.local import LocalExecutor
from engine.builder.job import Job
from engine.builder.live_rows import LiveRows
from engine.builder.lookup import Lookup, under
from engine.builder.sources import Resolved, SourceReadings
from engine.builder.worker_task import Outcome
from engine.cluster import survey
from engine.cluster.orders import JobOrder, NodeAnswer, Renewal, tier_of
from engine.cluster.survey import Question
from engine.errors import StepError, UserError
from engine.key import Key, changes, digest_of, inputs_of
from engine.machine import local_gpus
from engine.machine import tools as installed
from engine.store import user_cache
from engine.store.file_lock import FileLock
from engine.store.opening import join, open_store
from engine.store.record import Record
from engine.system import regular
from engine.text import redaction

STORE = "RECIPE_NODE_STORE"
"""The variable that names the folder of the store in which a node works."""
_LOG_SECONDS = 1.0
"""The shortest time between two pieces of a log that go to the builder."""
_LOCKED_SECONDS = 0.1
_LONGEST_LOG = 1 << 20
"""The number of bytes of a log that go back with an error: the end of the log."""
_LARGEST_ENVELOPE = 1 << 16
"""The most bytes of an envelope that goes back with the answer: a larger one would keep the builder from its work."""

_DESCRIPTION_SECONDS = 60.0

Send = Callable[[bytes], None]


class NodeStore:
    """The store of a node with its remote, and the executor of the process that this node's jobs share."""

    def __init__(self) -> None:
        folder = Path(os.environ.get(STORE) or user_cache.folder() / "node")
        folder.mkdir(parents=True, exist_ok=True)
        self.store = open_store(folder)
        join(self.store, folder, brief=False)
        # The remote has what a node makes, and a node saves no stat rows: after a power cut, it reads each file again.
        self.store.flushes = False
        self._executor: LocalExecutor | None = None
        self._description: Mapping[str, str] = {}
        self._description_time = -_DESCRIPTION_SECONDS
        self._tools: dict[str, str] = {}
        """The tools of the jobs that have run here, as they were at the last job that used them."""

    @property
    def description(self) -> Mapping[str, str]:
        """The facts that describe this machine, as they were at most a minute ago: to read them takes milliseconds."""
        if time.monotonic() - self._description_time > _DESCRIPTION_SECONDS:
            self._description, self._description_time = facts.describing(), time.monotonic()
        return self._description

    @cached_property
    def trouble(self) -> str:
        """Why no job can run here; "" if jobs can run."""
        tier = self.store.tier
        if tier is None:
            return "the node has no remote: set RECIPE_REMOTE where its Ray process starts"
        if not tier.settings.pushes:
            return "the node may not push: it has no signing key (`recipe cache keygen`), or RECIPE_PUSH is 0"
        return ""

    @property
    def remote(self) -> str:
        """The URL of the node's remote."""
        return "" if self.store.tier is None else self.store.tier.settings.url

    @property
    def executor(self) -> LocalExecutor:
        """The executor of this process."""
        if self._executor is None:
            self._executor = LocalExecutor(1)
        return self._executor

    def forget_executor(self) -> None:
        """End all workers, so that the next job starts with fresh ones."""
        if self._executor is not None:
            self._executor.close()
            self._executor = None

    def heed(self, tools: Mapping[str, str]) -> None:
        """End all workers if one of a job's tools is not what it was: they may have imported what it was."""
        if any(self._tools.get(name, value) != value for name, value in tools.items()):
            self.forget_executor()
        self._tools.update(tools)

    def run(self, order: JobOrder, send: Send) -> NodeAnswer:
        """Run a job, unless the store or the remote has its record, and push the record. Raises UserError."""
        if self.store.tier is not None:
            self.store.tier.look_again()
        sources = self._placed(order)
        job = order.job.job()
        named = {job.traits.sources[name]: source for name, source in sources.items()}
        live = LiveRows(self.store, machine=self.description)
        lookup = Lookup(self.store, live, sources=SourceReadings(self.store, placed=named))
        installed.look_again()
        if job.traits.needs_hardware:
            local_gpus.look_again()
        self.heed(live.tools(job.traits.tools))
        differs = [
            (change.row, change.new, change.old) for change in changes(lookup.key(job, _inputs(order)), order.key)
        ]
        if differs:
            return NodeAnswer(differs=differs)
        lock = self._locked(order, job)
        try:
            record = None if order.renewal is Renewal.RUN else self.store.find(order.key)
            if record is not None and (order.renewal is Renewal.NOTHING or self.store.bring(record)):
                lock.release()
                again = self._push(record, order.renewal)
                answer = self._answer(record, 0.0, record.peak_bytes, record.anonymous_bytes)
                return replace(answer, is_pushed_again=again)
            taken = self._brought(order.inputs, inputs_of(order.key))
        except BaseException:
            lock.release()
            raise
        return self._ran(RunOrder(lookup, job, order.key, taken, lock), order.renewal, send)

    def _ran(self, order: RunOrder, renewal: Renewal, send: Send) -> NodeAnswer:
        attempt = self.executor.start(str(digest_of(order.key)), order)
        try:
            outcome = self._outcome(attempt.log, send)
            try:
                record = attempt.record(outcome)
            except UserError as error:
                log = redaction.redacted_bytes(_from(attempt.log, 0))[-_LONGEST_LOG:].decode("utf-8", "replace")
                return NodeAnswer(outcome.seconds, outcome.peak_bytes, outcome.anonymous_bytes, error.fields(), log=log)
            self._push(record, renewal)
            return self._answer(record, outcome.seconds, outcome.peak_bytes, outcome.anonymous_bytes)
        except BaseException:
            self.forget_executor()
            raise
        finally:
            attempt.close()

    def _outcome(self, log: Path, send: Send) -> Outcome:
        """Wait for the outcome of the only job, and send what its log gets meanwhile."""
        sent, looked = 0, time.monotonic()
        while True:
            for _, outcome in self.executor.poll():
                return outcome
            if time.monotonic() - looked > _LOG_SECONDS:
                looked = time.monotonic()
                piece = whole_lines(_from(log, sent))
                sent += len(piece)
                if piece:
                    send(redaction.redacted_bytes(piece))

    def _answer(self, record: Record, seconds: float, peak_bytes: int, anonymous_bytes: int) -> NodeAnswer:
        """Return the answer about a record that the remote has, with its envelope if that is small."""
        raw = self.store.envelopes.read(record.digest) or b""
        envelope = raw.decode() if len(raw) <= _LARGEST_ENVELOPE else ""
        return NodeAnswer(seconds, peak_bytes, anonymous_bytes, envelope=envelope)

    def _locked(self, order: JobOrder, job: Job) -> FileLock:
        """Wait until no other process of this node runs the job, and return the lock of its key."""
        while True:
            lock = self.store.try_lock(digest_of(order.key), task=f"{job.recipe} {job.name}")
            if lock is not None:
                return lock
            time.sleep(_LOCKED_SECONDS)

    def _brought(self, keys: Mapping[str, Key], rows: Mapping[str, str]) -> dict[str, Record]:
        """Return the records of keys, by the names of inputs, with their artifacts. Raises LackingInputError.

        `rows` has the values that stand for the inputs in the key of the job. A record with another artifact, which
        this node made or took before the builder's was made, gives way to that of the remote.
        """
        tier = tier_of(self.store)
        records, lacking = {}, {}
        for name, key in keys.items():
            record = self.store.find(dict(key))
            if record is not None and not _is_meant(record, rows.get(name)):
                self.store.forget(record.digest)
                record = self.store.find(dict(key))
            if record is not None and _is_meant(record, rows.get(name)) and self.store.bring(record):
                records[name] = record
            else:
                lacking[name] = tier.lack(digest_of(key))
                tier.doubted.discard(digest_of(key))  # the builder has it written again, and asks again
        if lacking:
            facts = [f"the remote {tier.shown}", *(f"{name}: {error.what}" for name, error in lacking.items())]
            raise LackingInputError([*lacking], facts, next(iter(lacking.values())).hint)
        return records

    def _placed(self, order: JobOrder) -> dict[str, Resolved]:
        """Return the sources of a job, as they lie here or at a hub. Raises LackingInputError."""
        records = self._brought({name: source.key for name, source in order.sources.items() if not source.hub}, {})
        folders = {name: self.store.artifact_path(record.artifact) for name, record in records.items()}
        return {
            name: Resolved(source.row, source.hub or folders[name] / source.name, parts=source.parts)
            for name, source in order.sources.items()
        }

    def _push(self, record: Record, renewal: Renewal) -> bool:
        """Push a record unless the remote has all of it; return whether something was written. Raises StepError."""
        tier = tier_of(self.store)
        written = tier.counts.pushed, tier.counts.bytes_out
        if renewal is not Renewal.NOTHING:
            tier.doubted.add(record.digest)
        tier.push(record)
        error = tier.wait()
        if error is not None:
            raise StepError("the node cannot push what it has built", [error.what, *error.facts], error.hint)
        return written != (tier.counts.pushed, tier.counts.bytes_out)


_here: NodeStore | None = None


def _node() -> NodeStore:
    global _here  # noqa: PLW0603 - the jobs of a process share its store and its workers
    if _here is None:
        _here = NodeStore()
    return _here


def answer_survey(question: Mapping[str, Any]) -> dict[str, object]:
    """Return this node's survey as plain data."""
    try:
        here = _node()
        installed.look_again()
        local_gpus.look_again()
        taken = survey.take(Question(**question), LiveRows(here.store), remote=here.remote, trouble=here.trouble)
        return asdict(taken)
    except UserError as error:
        return asdict(survey.unusable(error))


def run_order(raw: bytes, send: Send) -> bytes:
    """Run the job of an order, and return the answer. Pieces of the log go to `send` while the job runs."""
    try:
        return _node().run(JobOrder.decode(raw), send).encode()
    except LackingInputError as error:
        return NodeAnswer(lacks=error.inputs, error=error.fields()).encode()
    except UserError as error:
        return NodeAnswer(error=error.fields()).encode()


def _is_meant(record: Record, row: str | None) -> bool:
    """Say whether the row of an input in a key stands for a record's artifact; sources have no such row."""
    return row in (None, str(record.artifact), under(record.digest))


def _inputs(order: JobOrder) -> dict[str, str]:
    """Return the rows of the inputs, which the builder alone can know."""
    return {name: value for name, value in inputs_of(order.key).items() if name.partition("/")[0] not in order.sources}


def whole_lines(piece: bytes) -> bytes:
    """Return a piece of a log up to its last line end: in half a line, no secret can be recognized."""
    return piece[: max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1]


def _from(log: Path, start: int) -> bytes:
    with suppress(OSError), regular.open_file(log) as file:
        file.seek(start)
        return file.read()
    return b""
