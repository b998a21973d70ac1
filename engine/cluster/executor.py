"""The executor of a cluster: it places jobs on nodes, and takes their records from the remote."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from engine.builder.executors.executor import DisplacedError, LackingInputError, LostError, Releasable, RunOrder
from engine.builder.worker_task import Outcome, error_of
from engine.cluster import survey
from engine.cluster.machines import ClusterMachines
from engine.cluster.nodes import ClusterNode, Piece, lane_of
from engine.cluster.orders import JobOrder, NodeAnswer, Renewal, Sender, SentJob, tier_of
from engine.digest import Digest
from engine.errors import StepError, StoreError, UserError
from engine.key import CODE, digest_of, without_inputs
from engine.store.file_lock import FileLock
from engine.store.record import Record
from engine.store.remote.objects import UntrustedError
from engine.system import regular

if TYPE_CHECKING:
    from engine.builder.executors.executor import Demand
    from engine.builder.job import Job
    from engine.builder.lookup import Lookup
    from engine.cluster.ray_engine import RayEngine

_POLL_SECONDS = 0.2


@dataclass
class ClusterRun:
    """One run of a job on a node, as the builder sees it. Its log is a copy of what the node has sent so far."""

    order: RunOrder
    lane: Demand
    kind: str
    places: Sequence[ClusterNode]
    """The nodes on one of which the job runs."""
    cleanup: contextlib.ExitStack
    log: Path
    sent: JobOrder
    place: ClusterNode | None = None
    """The node on which the job runs; None while it waits there for room."""

    @property
    def node(self) -> str | None:
        """The name of the node; None while the job waits for room."""
        return None if self.place is None else self.place.name

    def record(self, outcome: Outcome) -> Record:
        """Return the record that the node has pushed, which the store has now. Raises UserError."""
        store = self.order.lookup.store
        if outcome.error is not None:
            with contextlib.suppress(OSError):  # the error is reported in any case
                store.keep_log(digest_of(self.order.key), regular.read(self.log), failed=True)
            raise outcome.error
        if store.tier is not None:
            store.tier.look_again()
        record = store.find(self.order.key)
        if record is None:
            raise self._lost("the remote has no record of {!r} that counts here")
        if self.order.job.traits.delivers and not store.bring(record):
            raise self._lost("the output of {!r} cannot be brought from the remote")
        return record

    def _lost(self, what: str) -> StepError:
        """Return the error about a result that the remote does not give: a node can write it again, not sign it."""
        tier, key = tier_of(self.order.lookup.store), digest_of(self.order.key)
        tier.doubted.add(key)
        reason = tier.lack(key)
        kind = StepError if isinstance(reason, UntrustedError) else LostError
        facts = [f"node {self.node} has pushed it", f"the remote {tier.shown}", reason.what]
        return kind(what.format(self.order.job.name), facts, reason.hint)

    def compare(self, outcome: Outcome, stored: Record, *, keep: Path) -> None:
        """Raise StepError: nodes do not make stored jobs again."""
        del outcome, keep
        raise StepError(f"{stored.job!r} cannot be made again on a cluster")

    def close(self) -> None:
        """Delete the copy of the log, and give back the claim and the lock of the key."""
        with contextlib.suppress(FileNotFoundError):  # most jobs end before their nodes send anything
            os.unlink(self.log)
        self.cleanup.close()


@dataclass(frozen=True)
class _Claimed:
    """The lock of a key on this machine, and the claim on the key in the cluster."""

    ident: str
    lock: FileLock
    engine: RayEngine

    def release(self) -> None:
        """Give back both."""
        self.engine.release(self.ident)
        self.lock.release()


class ClusterExecutor:
    """Runs jobs on the nodes of a cluster.

    A job whose node is lost, or is not what it said, ends with DisplacedError; the build loop places it again.
    """

    def __init__(
        self,
        engine: RayEngine,
        lookup: Lookup,
        jobs: Sequence[Job],
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Ask all nodes what they have, and let the look-up know them. `notice` says what the user should know.

        Raises UsageError for a build without a remote, and UserError for a cluster without a usable node, or with a
        node of another version. The engine is closed then.
        """
        self._engine = engine
        with contextlib.ExitStack() as resources:
            resources.callback(engine.close)
            self._tier = tier_of(lookup.store)
            self._sender = Sender(lookup.store, self._tier)
            remote, locked = self._tier.settings.url, lookup.rows.required_tools
            self._machines = ClusterMachines(engine, jobs, remote=remote, locked=locked, notice=notice)
            lookup.machines = self._machines
            self._logs = resources.enter_context(lookup.store.presence.workplace())
            self._resources = resources.pop_all()
        self._nodes = self._machines.nodes
        self._runs: dict[str, ClusterRun] = {}
        self._renewed: set[Digest] = set()
        """The keys of the forced jobs that a node has run."""

    def lane(self, job: Job, demand: Demand) -> Demand:
        """Return what a job needs of a node, at most what the largest node has: such a job runs alone there."""
        return self._nodes.fitted(lane_of(job, demand))

    def has_room(self, lane: Demand) -> bool:
        """Say whether nodes have room for one more job of a lane."""
        return self._nodes.has_room(lane)

    def claim(self, ident: str, lock: FileLock) -> Releasable | str:
        """Return the lock of a key with the claim of the cluster on it, or the builder that has the claim."""
        holder = self._engine.claim(ident)
        if holder:
            lock.release()
            return holder
        return _Claimed(ident, lock, self._engine)

    def start(self, ident: str, order: RunOrder) -> ClusterRun:
        """Send a job to the nodes of its key. Raises LackingInputError and StepError; the order's lock is free then."""
        lane = cast("Demand", order.lane)
        with contextlib.ExitStack() as resources:
            resources.callback(order.lock.release)
            own = without_inputs(order.key)
            kinds = (kind for kind in self._nodes.kinds(lane) if order.lookup.own_rows(order.job, kind) == own)
            kind = next(kinds, None)
            if kind is None:
                raise DisplacedError(f"no node can run {order.job.name!r} any more")
            places = self._nodes.pools(lane)[kind]
            self._sender.send_inputs(order)
            sources = self._sender.sources(order)
            inputs = {name: record.key for name, record in order.inputs.items()}
            sent = JobOrder(SentJob.of(order.job), order.key, inputs, sources, self._renewal(order))
            self._engine.submit(ident, places, lane, sent.encode())
            run = ClusterRun(order, lane, kind, places, resources.pop_all(), self._logs / ident, sent)
        self._nodes.begin(kind, lane)
        self._runs[ident] = run
        return run

    def _renewal(self, order: RunOrder) -> Renewal:
        """Return what a node does although it has a result. A forced job runs once, also if its result is lost then."""
        key = digest_of(order.key)
        if order.forced and key not in self._renewed:
            return Renewal.RUN
        return Renewal.PUSH if key in self._tier.doubted or order.forced else Renewal.NOTHING

    def poll(self, timeout: float = _POLL_SECONDS) -> list[tuple[str, Outcome | None]]:
        """Wait up to `timeout` seconds for outcomes and for begins; keep what came of logs."""
        news: list[tuple[str, Outcome | None]] = []
        for piece in self._engine.poll(timeout):
            run = self._runs.get(piece.ident)
            if run is None:
                continue  # a second answer, or one to a run that was given up
            if piece.node and run.place is None:
                run.place = next((node for node in run.places if node.id == piece.node), None)
                news += [(piece.ident, None)] if run.place is not None else []
            if piece.log:
                with run.log.open("ab") as log:
                    log.write(piece.log)
            if piece.answer is not None or piece.lost:
                news.append((piece.ident, self._ended(run, piece)))
        self._machines.look_now_and_then()
        return [*news, *self._stranded()]

    def has_changed(self) -> bool:
        """Say, once for each change, whether nodes came or left."""
        return self._machines.has_changed()

    def close(self) -> None:
        """End all runs and leave the cluster."""
        self._runs.clear()
        self._resources.close()

    def _stranded(self) -> Iterator[tuple[str, Outcome]]:
        """End the runs on nodes that have left, and send those that may wait for one to the others.

        Ray ends them at once where the node's processes have died. A node that is only silent, as behind a network
        that is cut, keeps a run in Ray for minutes after the cluster has given up the node.
        """
        for ident, run in list(self._runs.items()):
            gone = next(filter(self._machines.has_left, run.places if run.place is None else [run.place]), None)
            if gone is None:
                continue
            self._engine.forget(ident)
            others = self._nodes.pools(run.lane).get(run.kind, ())
            if run.place is None and others:
                run.places = others
                self._engine.submit(ident, others, run.lane, run.sent.encode())
            else:
                yield ident, self._ended(run, Piece(ident, lost=f"node {gone.name} has left the cluster"))

    def _ended(self, run: ClusterRun, piece: Piece) -> Outcome:
        del self._runs[piece.ident]
        self._nodes.end(run.kind, run.lane)
        name = run.order.job.name
        if run.place is None:
            return _failed(DisplacedError(f"no node is left for {name!r}: {piece.lost}"))
        if piece.answer is not None:
            return self._outcome(run, run.place, piece.answer)
        if piece.node_is_gone:
            self._machines.leave_out(run.place, piece.lost)
        return _failed(DisplacedError(f"node {run.node} was lost while it ran {name!r}: {piece.lost}"))

    def _outcome(self, run: ClusterRun, place: ClusterNode, raw: bytes) -> Outcome:
        name = run.order.job.name
        try:
            answer = NodeAnswer.decode(raw)
        except (ValueError, TypeError) as wrong:
            self._machines.leave_out(place, "its answer is no answer")
            return _failed(DisplacedError(f"node {place.name} gave no answer about {name!r}: {wrong}"))
        outcome = Outcome(None, None, answer.seconds, answer.peak_bytes, anonymous_bytes=answer.anonymous_bytes)
        if answer.differs:
            rows = ", ".join(f"{row} is {here}, not {ordered}" for row, ordered, here in answer.differs[:3])
            self._machines.leave_out(place, f"it is not what it was: {rows}")
            code = next(((ordered, here) for row, ordered, here in answer.differs if row == CODE), None)
            other = DisplacedError(f"node {place.name} is not what it was: {rows}")
            return _failed(_other_code(place, run.order.job, *code) if code else other)
        if answer.lacks:
            self._sender.miss(run.sent, answer.lacks)
            facts = [f"node {place.name}", *answer.error["facts"]]
            return replace(outcome, error=LackingInputError(answer.lacks, facts, answer.error["hint"]))
        if answer.error:
            run.log.write_bytes(answer.log.encode())
            return replace(outcome, error=error_of(answer.error))
        if run.sent.renewal is Renewal.RUN:
            self._renewed.add(digest_of(run.order.key))
            run.order.lookup.store.forget(digest_of(run.order.key))
        with contextlib.suppress(OSError, StoreError):  # the remote has it, too: `record` asks there
            self._tier.receive(run.order.key, answer.envelope.encode())
        if answer.is_pushed_again:
            self._tier.counts.again.append(name)
        return outcome


def _other_code(place: ClusterNode, job: Job, ordered: str | None, there: str | None) -> StepError:
    """Return the error about a node that has this version of the program, and other code for the step of a job."""
    version = "" if place.survey is None else place.survey.version
    return StepError(
        f"node {place.name} has other code for {job.name!r} than this machine",
        [
            f"node {place.name}: {version}, code {there}",
            f"this machine: {survey.version()}, code {ordered}",
            f"the step is {job.traits.kind}",
        ],
        "install the same version of the step's package on all nodes, and start their Ray processes again",
    )


def _failed(error: UserError) -> Outcome:
    return Outcome(None, error, 0.0, 0)
