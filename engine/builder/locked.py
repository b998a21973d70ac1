"""The jobs that another builder runs: when this builder tries them again, and when it says that it waits."""

from __future__ import annotations

import time
from collections.abc import Iterator

from engine.builder.executors.executor import Executor
from engine.builder.tickets import State, Ticket
from engine.digest import Digest
from engine.events import RunsElsewhere
from engine.store.file_lock import PATIENCE
from engine.store.store import Store

POLL_SECONDS = 0.05
"""Seconds between two attempts at the lock of a key."""


class LockedJobs:
    """The jobs whose keys another builder has locked."""

    def __init__(self, store: Store, executor: Executor) -> None:
        self._store = store
        self._executor = executor
        self._waits: dict[Digest, tuple[Ticket, float]] = {}
        """Each job with the time at which this builder began to wait for it."""
        self._announced: set[Digest] = set()
        self._tried = 0.0

    def add(self, ticket: Ticket) -> None:
        """Note that another builder runs a ticket's job."""
        self._waits.setdefault(ticket.digest, (ticket, time.monotonic()))

    def is_due(self) -> bool:
        """Say whether the locks are tried again now; the next moment is counted from then on."""
        now = time.monotonic()
        if now - self._tried <= POLL_SECONDS:
            return False
        self._tried = now
        return True

    def announce(self) -> Iterator[RunsElsewhere]:
        """Say once for each key which other builder runs the job, after this builder has waited for a while."""
        for digest, (ticket, since) in self._waits.items():
            if digest in self._announced or ticket.state is State.ENDED or time.monotonic() - since <= PATIENCE:
                continue
            self._announced.add(digest)
            other = self._store.holder_of(digest)
            name = (ticket.variant.name, ticket.job.name)
            if other is None:
                yield RunsElsewhere(*name, self._executor.holder(str(digest)) or "another builder")
            else:
                yield RunsElsewhere(*name, str(other), other.pid, other.host, other.since)
