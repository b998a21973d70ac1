"""What a small job costs on a cluster: a build on Ray, beside plain Ray tasks that move the same bytes."""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import cluster_tasks
import loopback
from timing import duration, machine, table, times

if TYPE_CHECKING:
    from engine.builder.executors.executor import Executor
    from engine.builder.job import Job
    from engine.builder.lookup import Lookup

OURS, HERE, PLAIN, STORED, FORKS, FRESH = (
    "recipe build --on",
    "recipe build, on this machine",
    "plain Ray tasks",
    "plain Ray tasks, by the store of their node",
    "plain Ray tasks, an empty fork each",
    "plain Ray tasks, a process each",
)
_FRESH_PAIRS = 5
"""A fresh process of Ray's takes more than a second, so that few tasks of this kind are run."""
RECORDS = "v1/records"
"""The folder of the remote with an object for each small job."""


def main() -> None:
    """Let the contenders take turns on one cluster, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000, help="the number of jobs of a run (1000)")
    parser.add_argument("--nodes", type=int, default=2, help="nodes of the cluster, with one CPU each (2)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each contender (3)")
    options = parser.parse_args()
    took: dict[str, list[float]] = {OURS: [], HERE: [], PLAIN: [], STORED: [], FORKS: [], FRESH: []}
    pairs = options.jobs // 2
    with (
        tempfile.TemporaryDirectory(prefix="cluster-jobs") as scratch,
        loopback.cluster(options.nodes, Path(scratch)) as cluster,
    ):
        os.environ |= cluster.environment
        for turn in range(options.rounds):
            folder = Path(scratch) / str(turn)
            for name, run, count in (
                (OURS, _built, pairs),
                (HERE, functools.partial(_built_here, options.nodes), pairs),
                (PLAIN, _plain, pairs),
                (STORED, _stored, pairs),
                (FORKS, _forking, pairs),
                (FRESH, _fresh, min(pairs, _FRESH_PAIRS)),
            ):
                seconds = _in_a_process(run, count, folder, cluster.remote)
                took[name].append(seconds / (2 * count))
                print(f"{name}\t{duration(took[name][-1])}", file=sys.stderr, flush=True)
    rows = [
        (name, duration(statistics.median(every)), duration(min(every)), times(_ratio(every, took[PLAIN])))
        for name, every in took.items()
    ]
    heads = (f"{pairs * 2} jobs on {options.nodes} nodes", "median a job", "least", "of a plain task's time")
    print(table(heads, rows))
    print(f"\n{machine()}")


def _ratio(every: Sequence[float], plain: Sequence[float]) -> float:
    """Return how many times the time of a plain task a contender takes: the median over the rounds."""
    return statistics.median(one / other for one, other in zip(every, plain, strict=True))


def _in_a_process(run: Callable[..., float], *arguments: object) -> float:
    with ProcessPoolExecutor(1, get_context("spawn")) as one:
        return one.submit(run, *arguments).result()


def _built(pairs: int, folder: Path, remote: Path) -> float:
    """Return the seconds of a build of pairs of jobs on the cluster, of which the second reads the first's file.

    The folder has the number of the round as its name, so that each round has jobs of its own.
    """
    from engine.cluster.executor import ClusterExecutor
    from engine.cluster.ray_engine import RayEngine

    del remote
    return _build(
        pairs, folder, int(folder.name) * pairs, lambda lookup, jobs: ClusterExecutor(RayEngine("auto"), lookup, jobs)
    )


def _built_here(slots: int, pairs: int, folder: Path, remote: Path) -> float:
    """The same with other jobs on this machine, which pushes what it makes to the same remote."""
    from engine.builder.executors.local import LocalExecutor

    del remote
    first = -(int(folder.name) + 1) * pairs
    return _build(pairs, folder.with_name(f"{folder.name}-here"), first, lambda *_: LocalExecutor(slots))


def _build(pairs: int, folder: Path, first: int, executor_for: Callable[[Lookup, list[Job]], Executor]) -> float:
    from cluster_steps import After, Tell
    from small_builds import project_in, variant

    from engine.builder.lookup import Lookup
    from engine.builder.loop import run
    from engine.builder.options import Options
    from engine.events import Ended
    from engine.store.opening import open_store

    folder.mkdir()
    project_in(folder)
    variants = [variant(folder, Tell(number=first + n), After(), name=f"r{n}") for n in range(pairs)]
    lookup = Lookup(open_store(folder / "cache", project=folder))
    executor = executor_for(lookup, [job for each in variants for job in each.jobs])
    began = time.perf_counter()
    events = run(variants, lookup, executor, Options(out=folder / "build"))
    states = [event.state for event in events if isinstance(event, Ended)]
    seconds = time.perf_counter() - began
    assert states == ["built"] * (pairs * 2), set(states)
    return seconds


def _plain(pairs: int, folder: Path, remote: Path) -> float:
    """Return the seconds of as many Ray tasks, which read and write objects with the bytes of the build's."""
    return _tasks(pairs, f"plain-{folder.name}", remote)


def _stored(pairs: int, folder: Path, remote: Path) -> float:
    """The same with artifacts and signed records, which go through the store of the node and its remote."""
    return _tasks(pairs, f"stored-{folder.name}", remote, cluster_tasks.stored)


def _fresh(pairs: int, folder: Path, remote: Path) -> float:
    """The same, with a new process for each task: a job of a build has one, too."""
    return _tasks(pairs, f"fresh-{folder.name}", remote, max_calls=1)


def _forking(pairs: int, folder: Path, remote: Path) -> float:
    """The same in Ray's own processes; for each task, a process that has loaded what steps need forks an empty child.

    No executor that sends each job by Ray, and gives it a fresh process, is faster.
    """
    return _tasks(pairs, f"forking-{folder.name}", remote, cluster_tasks.forked_and_moved)


def _tasks(
    pairs: int, prefix: str, remote: Path, work: Callable[..., None] = cluster_tasks.moved, **options: int
) -> float:
    import ray

    objects = [path.read_bytes() for path in sorted((remote / RECORDS).rglob("*.json"))[: pairs * 2]]
    assert len(objects) == pairs * 2
    ray.init("auto", log_to_driver=False, configure_logging=False)
    task = ray.remote(max_retries=0, num_cpus=1, **options)(work)
    ray.get([task.remote(str(remote), "", "", b"") for _ in range(4)])  # starts the workers
    began = time.perf_counter()
    ends = []
    for number in range(pairs):
        first, second = (f"{prefix}/{number}-{name}" for name in ("tell", "after"))
        writer = task.remote(str(remote), "", first, objects[2 * number])
        ends.append(task.remote(str(remote), first, second, objects[2 * number + 1], writer))
    ray.get(ends)
    seconds = time.perf_counter() - began
    ray.shutdown()
    return seconds


if __name__ == "__main__":
    main()
