"""What the build loop expects of an executor, wherever it runs jobs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from engine.errors import StepError
from engine.machine import cpu

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.builder.lookup import Lookup
    from engine.builder.worker_task import Outcome
    from engine.key import Key
    from engine.store.file_lock import FileLock
    from engine.store.record import Record

_LEAST = 512 << 20
"""The expected bytes of a job about which nothing is known but its inputs, in addition to `_TIMES` their size."""
_TIMES = 3
"""How many times the bytes of its inputs a job may hold: the export of BERT-large, with 1.3 GB, needs 4 GB."""
_COARSE_BITS = 3
"""Expected memory is rounded up to a number with so many significant bits: at most a quarter more than expected."""


class Demand(NamedTuple):
    """What a job takes of its machine. Jobs with equal demands wait in one queue."""

    hardware: str
    """The name of the `Hardware` that a machine of a cluster must have; "" for none, and on this machine."""
    threads: int
    """The number of CPUs that the job keeps busy."""
    memory: int
    """Bytes."""
    alone: bool
    """Whether nothing may run beside the job, because it measures time."""

    @property
    def gpus(self) -> int:
        """The number of GPUs that the job takes."""
        return 1 if self.hardware else 0


def demand_of(job: Job, inputs: Mapping[str, Record], earlier: int | None) -> Demand:
    """Return what a job takes.

    `earlier` is the peak memory in bytes of an earlier run of the job, if one is known: it counts more than what the
    step declares, and that counts more than an estimate from the size of the inputs.
    """
    traits = job.traits
    size = sum(size for record in inputs.values() for size, _ in record.files.values())
    return Demand("", traits.threads, _rounded(earlier or traits.memory or _LEAST + _TIMES * size), traits.exclusive)


def _rounded(size: int) -> int:
    """Return a size rounded up, so that similar jobs have equal demands and wait in one queue."""
    unit = 1 << max(0, size.bit_length() - _COARSE_BITS)
    return -(-size // unit) * unit


class DisplacedError(StepError):
    """A job has lost its machine before it ended: the node is gone, or is not what it was. The job is placed again."""


class LostError(StepError):
    """Something that belongs at the remote cannot be had from there. The job is tried once more."""


class LackingInputError(LostError):
    """Inputs of a job cannot be had where the job is to run; `inputs` are their names."""

    def __init__(self, inputs: Sequence[str], facts: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(f"these inputs cannot be brought: {', '.join(inputs)}", facts, hint)
        self.inputs = tuple(inputs)


class Releasable(Protocol):
    """The right to run the job of a key."""

    def release(self) -> None:
        """Give back the right."""


@dataclass(frozen=True)
class RunOrder:
    """A job that is to run, with its key, the records of its inputs by parameter, and the lock of its key."""

    lookup: Lookup
    job: Job
    key: Key
    inputs: Mapping[str, Record]
    lock: Releasable
    lane: Demand | None = None
    """What the job takes of a machine, as the executor has fitted it to its machines."""
    forced: bool = False
    """Whether the job runs though its key may have a record, which the new one replaces."""


class Run(Protocol):
    """One run of a job."""

    @property
    def log(self) -> Path:
        """The path of the running job's log on this machine."""

    @property
    def node(self) -> str | None:
        """The name of the machine that runs the job: "" for this machine, None while a cluster has no room."""

    def record(self, outcome: Outcome) -> Record:
        """Return the record of the run, which the store has now. Raises UserError if the run failed."""

    def compare(self, outcome: Outcome, stored: Record, *, keep: Path) -> None:
        """Raise UserError if the run failed, or if its output has other bytes than a stored record names.

        Both outputs are then kept in the folder `keep`.
        """

    def close(self) -> None:
        """Delete what is left of the run on this machine, and release the lock of the job's key."""


class Executor(Protocol):
    """Runs jobs. The build loop decides which job is next; the executor decides where there is room for it."""

    def lane(self, job: Job, demand: Demand) -> Demand:
        """Return what a job takes of a machine, at most what one has: jobs with equal lanes wait in one queue."""

    def has_room(self, lane: Demand) -> bool:
        """Say whether a job of a lane can start now."""

    def claim(self, ident: str, lock: FileLock) -> Releasable | str:
        """Return the right to run the job of a key, given this machine's lock of it.

        If a builder on another machine has the right, return its name, and release the lock.
        """

    def start(self, ident: str, order: RunOrder) -> Run:
        """Start a job; `poll` later returns the outcome together with `ident`.

        The run owns the lock of the order. Raises LackingInputError, OSError and StoreError; the lock is free then.
        """

    def poll(self, timeout: float = ...) -> Iterable[tuple[str, Outcome | None]]:
        """Wait up to `timeout` seconds for outcomes, and return each once, with the `ident` of its job.

        None comes before an outcome, for a run that has found room on a machine of a cluster.
        """

    def has_changed(self) -> bool:
        """Say, once for each change, whether machines came or left, so that jobs in the queues are placed again."""

    def close(self) -> None:
        """End all jobs and whatever they have started."""


_MEMORY_PER_JOB = 4 << 30
"""Bytes of memory that each of several parallel jobs may need.

The export of MiniLM needs about 1 GB at its peak, and the export of BERT-large needs about 4 GB.
"""


def default_slots() -> int:
    """Return how many jobs run at once by default, by the number of CPUs and the memory."""
    return max(1, min(len(cpu.usable()), (machine_memory() or _MEMORY_PER_JOB) // _MEMORY_PER_JOB))


def machine_memory() -> int:
    """Return the bytes of memory that this machine has; 0 if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
