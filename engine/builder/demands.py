"""What a job takes of a machine while it runs: CPUs, and memory as far as it can be foreseen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.store.record import Record

_LEAST = 512 << 20
"""The expected bytes of a job about which nothing is known but its inputs, in addition to `_TIMES` their size."""
_TIMES = 3
"""How many times the bytes of its inputs a job may hold: the export of BERT-large, with 1.3 GB, needs 4 GB."""
_COARSE_BITS = 3
"""Expected memory is rounded up to a number with so many significant bits: at most a quarter more than expected."""


class Demand(NamedTuple):
    """What a job takes of its machine."""

    threads: int
    """The number of CPUs that the job keeps busy."""
    memory: int
    """Bytes."""
    alone: bool
    """Whether nothing may run beside the job, because it measures time."""


def of(job: Job, inputs: Mapping[str, Record], earlier: int | None) -> Demand:
    """Return what a job takes.

    `earlier` is the peak memory in bytes of an earlier run of the job, if one is known: it counts more than what the
    step declares, and that counts more than an estimate from the size of the inputs.
    """
    traits = job.traits
    size = sum(size for record in inputs.values() for size, _ in record.files.values())
    return Demand(traits.threads, _rounded(earlier or traits.memory or _LEAST + _TIMES * size), traits.exclusive)


def _rounded(size: int) -> int:
    """Return a size rounded up, so that similar jobs have equal demands and wait in one queue."""
    unit = 1 << max(0, size.bit_length() - _COARSE_BITS)
    return -(-size // unit) * unit
