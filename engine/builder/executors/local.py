"""The executor of this machine: a fresh worker process for each job, forked from a zygote."""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.builder.executors.executor import machine_memory
from engine.builder.executors.outcomes import crash, outcome, overtime
from engine.builder.executors.zygotes import Lineage, ZygoteHandle
from engine.builder.worker_task import Outcome, WorkerTask
from engine.errors import StepError
from engine.system import processes
from engine.system.file_systems import MountEvents

if TYPE_CHECKING:
    from engine.builder.attempt import Attempt
    from engine.builder.executors.executor import Demand, RunOrder
    from engine.builder.job import Job
    from engine.store.file_lock import FileLock

PRELOADED = ("torch", "transformers", "timm", "onnx", "sympy") if sys.platform == "linux" else ()
"""Tools that are slow to import and start no threads that outlive a fork: zygotes import them before jobs do.

Two steps share the zygotes of the tools that both name first, in this order.
"""
_POLL_SECONDS = 0.2
_LONGEST_LOOK_SECONDS = 1.0
"""The most time between two looks at a job that counts for its limit: a stopped builder (SIGSTOP) looks at no job."""
_SERIAL = itertools.count()


@dataclass
class _Job:
    """A job that a worker is running."""

    ident: str
    task: WorkerTask
    variables: tuple[str, ...]
    """The environment variables that the step names."""
    modules: tuple[str, ...]
    """What its zygotes import, unless a module of these is one that no zygote can import."""
    time_limit: float
    zygote: ZygoteHandle = field(init=False)
    started: float = field(init=False)
    watched_seconds: float = 0.0
    """How long the job has run while this process was looking."""
    anonymous_bytes: int = 0


class LocalExecutor:
    """An executor that runs at most `slots` jobs at a time, each in a worker process of its own.

    Jobs that run at a time are expected to need no more than `memory` bytes together. A job that needs more than that
    by itself runs alone.
    """

    def __init__(self, slots: int, *, memory: int | None = None) -> None:
        """By default, jobs share all memory of this machine."""
        self.slots = slots
        self._memory = memory or machine_memory() or sys.maxsize
        self._zygotes: list[ZygoteHandle] = []
        self._jobs: list[_Job] = []
        self._alone: set[str] = set()
        """Modules that no zygote imports, because a zygote with the module has several threads or dies."""
        self._selector = selectors.DefaultSelector()
        self._mounts = MountEvents()
        if self._mounts.descriptor is not None:
            self._selector.register(self._mounts.descriptor, selectors.EVENT_READ)
        self._watched = 0.0
        self._demands: dict[str, Demand] = {}
        """What the running jobs take, by their `ident`."""

    def lane(self, job: Job, demand: Demand) -> Demand:
        """Return what a job takes of this machine, at most what this machine has."""
        del job
        return demand._replace(threads=min(demand.threads, self.slots), memory=min(demand.memory, self._memory))

    def has_room(self, lane: Demand) -> bool:
        """Say whether a job can start now: with free slots and memory, or with nothing beside it if it runs alone."""
        running = self._demands.values()
        if lane.alone or any(each.alone for each in running):
            return not self._jobs
        threads = max(len(self._jobs), sum(each.threads for each in running))
        memory = sum(each.memory for each in running)
        return threads + lane.threads <= self.slots and memory + lane.memory <= self._memory

    def claim(self, ident: str, lock: FileLock) -> FileLock:
        """Return the lock of a key: builders that share a store need nothing else."""
        del ident
        return lock

    def start(self, ident: str, order: RunOrder) -> Attempt:
        """Start a job. Raises OSError where the system allows no further process or open file, and StoreError."""
        from engine.builder.attempt import Attempt

        attempt = Attempt.prepare(order, self._mounts)
        traits = order.job.traits
        try:
            self.submit(
                ident, attempt.task, tools=traits.tools, variables=traits.variables, time_limit=traits.time_limit
            )
        except OSError:
            attempt.close()
            raise
        if order.lane is not None:
            self._demands[ident] = order.lane
        return attempt

    def has_changed(self) -> bool:
        """Return False: this machine stays the same during a build."""
        return False

    def submit(
        self, ident: str, task: WorkerTask, *, tools: Sequence[str], variables: Sequence[str], time_limit: float
    ) -> None:
        """Give a worker one job to run; `poll` later returns the outcome of the run together with `ident`.

        Raises OSError where the system allows no further process or open file.
        """
        task = replace(task, id=f"{os.getpid()}-{next(_SERIAL)}")
        self._start(_Job(ident, task, tuple(variables), _modules(tools, task.step), time_limit))

    def _start(self, job: _Job) -> None:
        """Send the task of a job to an idle zygote, or to a new one."""
        lineage = Lineage(job.variables, tuple(layer for layer in job.modules if layer not in self._alone))
        while True:
            job.zygote = self._zygote(lineage, idle=True)
            try:
                job.zygote.start(job.task)
            except ConnectionError:  # the zygote has ended since `poll` looked
                self._remove(job.zygote)
                continue
            job.started = time.monotonic()
            self._jobs.append(job)
            return

    def _zygote(self, lineage: Lineage, *, idle: bool) -> ZygoteHandle:
        """Return a zygote of a lineage, which is started if there is none."""
        busy = [job.zygote for job in self._jobs] if idle else []
        for each in self._zygotes:
            if each.lineage == lineage and each not in busy:
                return each
        while True:
            if not lineage.modules:
                return self._add(ZygoteHandle.spawn(lineage.variables))
            parent = self._zygote(lineage.parent, idle=False)
            try:
                return self._add(parent.branch(lineage.modules[-1]))
            except ConnectionError:  # the zygote has ended since `poll` looked
                self._remove(parent)

    def _add(self, zygote: ZygoteHandle) -> ZygoteHandle:
        self._zygotes.append(zygote)
        self._selector.register(zygote.control, selectors.EVENT_READ, zygote)
        return zygote

    def poll(self, timeout: float = _POLL_SECONDS) -> list[tuple[str, Outcome]]:
        """Wait up to `timeout` seconds for outcomes, and return each outcome with the `ident` of its task."""
        done: list[tuple[str, Outcome]] = []
        for event, _ in self._selector.select(timeout):
            zygote: ZygoteHandle | None = event.data
            if zygote is None:
                self._mounts.look(is_changed=True)
                continue
            try:
                for message in zygote.messages():
                    done += self._handle(zygote, message)
            except EOFError:
                if zygote in self._zygotes:
                    done += self._ended(zygote)
        last, now = self._watched, time.monotonic()
        if now - last > _POLL_SECONDS:
            self._watched = now
            done += self._watch(last, now)
        return done

    def _handle(self, zygote: ZygoteHandle, message: Mapping[str, Any]) -> Iterator[tuple[str, Outcome]]:
        """Yield the outcome of the job that a zygote reports as ended."""
        job = self._job_of(zygote)
        if "threads" in message:
            self._leave_out(zygote)
            return
        if job is None or message.get("id") != job.task.id:
            self._remove(zygote)  # nobody waits for this answer: it is a second one, or one of another run
        if job is not None:
            yield self._finish(job, outcome(job.task, message))

    def _ended(self, zygote: ZygoteHandle) -> Iterator[tuple[str, Outcome]]:
        """Yield the outcome of the job whose zygote has ended.

        If the zygote ended while it imported its modules, the job starts again from a zygote without these modules.
        """
        if not zygote.ready and zygote.lineage.modules:
            self._leave_out(zygote)
            return
        job = self._job_of(zygote)
        self._remove(zygote)
        if job is not None:
            yield self._finish(job, _failure(job, crash(job.task)))

    def _leave_out(self, zygote: ZygoteHandle) -> None:
        """Start the jobs of a zygote again, from zygotes that do not import the last module of this zygote."""
        if zygote.lineage.modules:
            self._alone.add(zygote.lineage.modules[-1])
        job = self._job_of(zygote)
        self._remove(zygote)
        if job is not None:
            self._jobs.remove(job)
            self._start(job)

    def _watch(self, last: float, now: float) -> Iterator[tuple[str, Outcome]]:
        """Sample the memory of each worker, and yield the outcome of each job that is past its time limit.

        `last` is the time of the last look.
        """
        for job in list(self._jobs):
            pids = processes.children(job.zygote.pid) if job.zygote.pid else []
            job.anonymous_bytes = max([job.anonymous_bytes, *map(processes.anonymous_of, pids)])
            job.watched_seconds += min(now - max(last, job.started), _LONGEST_LOOK_SECONDS)
            if job.watched_seconds > job.time_limit:
                self._remove(job.zygote)
                yield self._finish(job, _failure(job, overtime(job.task, job.time_limit)))

    def close(self) -> None:
        """Kill all workers, the programs that they have started, and all zygotes."""
        for each in list(self._zygotes):
            self._remove(each)
        self._jobs.clear()
        self._demands.clear()
        self._selector.close()
        self._mounts.close()

    def _job_of(self, zygote: ZygoteHandle) -> _Job | None:
        return next((job for job in self._jobs if job.zygote is zygote), None)

    def _finish(self, job: _Job, outcome: Outcome) -> tuple[str, Outcome]:
        self._jobs.remove(job)
        self._demands.pop(job.ident, None)
        return job.ident, replace(outcome, anonymous_bytes=job.anonymous_bytes)

    def _remove(self, dead: ZygoteHandle) -> None:
        self._zygotes.remove(dead)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(dead.control)
        dead.remove()


def _modules(tools: Sequence[str], step: str) -> tuple[str, ...]:
    """Return the modules that the zygotes of a step import; `step` is the class of the step, `module:Class`."""
    return (*(tool for tool in PRELOADED if tool in tools), step.partition(":")[0])


def _failure(job: _Job, error: StepError) -> Outcome:
    return Outcome(None, error, time.monotonic() - job.started, peak_bytes=0)
