"""A builder on a cluster in a process of its own: it says how long its build took, once all builders have begun."""

import json
import os
import sys
import time
from pathlib import Path

import cluster_steps as steps
from small_builds import project_in, variant

from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.cluster.executor import ClusterExecutor
from engine.cluster.ray_engine import RayEngine
from engine.events import Ended
from engine.store.opening import open_store


def main(folder, address, *, salt, count, seconds, meeting):
    """Build variants of a job that takes some seconds and one that takes none, when `meeting` has a file `go`."""
    project_in(folder)
    variants = [
        variant(folder, steps.Tell(number=salt + number, seconds=seconds), steps.After(), name=f"r{number}")
        for number in range(count)
    ]
    lookup = Lookup(open_store(folder / "cache", project=folder))
    executor = ClusterExecutor(RayEngine(address), lookup, [job for each in variants for job in each.jobs])
    (meeting / str(os.getpid())).touch()
    steps.wait_for(meeting / "go")
    began = time.monotonic()
    events = [*run(variants, lookup, executor, Options(out=folder / "build"))]
    ended = [event.state for event in events if isinstance(event, Ended)]
    print(json.dumps({"seconds": time.monotonic() - began, "ended": ended}))


if __name__ == "__main__":
    place, head, first, number, lasts, where = sys.argv[1:]
    main(Path(place), head, salt=int(first), count=int(number), seconds=float(lasts), meeting=Path(where))
