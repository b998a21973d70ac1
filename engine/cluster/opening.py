"""Open a cluster by its address: the one place that knows which engines there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.cluster.engine import ClusterEngine
from engine.cluster.executor import ClusterExecutor
from engine.cluster.ray_engine import RayEngine

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.builder.lookup import Lookup


def engine_of(address: str) -> ClusterEngine:
    """Return the engine of a cluster. Raises UsageError for a wrong address, UserError where nothing answers."""
    return RayEngine(address)


def executor_of(address: str, lookup: Lookup, jobs: Sequence[Job]) -> ClusterExecutor:
    """Return the executor of a cluster for a build of some jobs, and let the look-up know its machines.

    Raises UsageError for a wrong address and for a build without a remote, and UserError for a cluster that does not
    answer or that has no usable node.
    """
    return executor_on(engine_of(address), lookup, jobs)


def executor_on(engine: ClusterEngine, lookup: Lookup, jobs: Sequence[Job]) -> ClusterExecutor:
    """Return the executor of a cluster that has been opened. Closes the engine where it raises UserError."""
    try:
        return ClusterExecutor(engine, lookup, jobs)
    except BaseException:
        engine.close()
        raise
