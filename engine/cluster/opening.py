"""Open a cluster by its address: the one place that knows which engines there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def executor_on(
    engine: ClusterEngine, lookup: Lookup, jobs: Sequence[Job], notice: Callable[[str], None] = lambda _: None
) -> ClusterExecutor:
    """Return the executor of an open cluster for a build of some jobs, and let the look-up know its machines.

    `notice` says during the build what the user should know. Raises UsageError for a build without a remote, and
    UserError for a cluster without a usable node, or with a node of another version. The engine is closed then.
    """
    try:
        return ClusterExecutor(engine, lookup, jobs, notice)
    except BaseException:
        engine.close()
        raise
