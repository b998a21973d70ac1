"""How the build loop grows: many jobs, placed on many nodes that only pretend to run them."""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import program
from timing import machine, table

sys.path += [
    str(program.ROOT),
    str(program.ROOT / "tests" / "support"),
]  # behind this folder, which has a `program`, too


class PretendedEngine:
    """A cluster engine whose nodes answer at once, and run nothing."""

    shown = "the nodes of a simulation"

    def __init__(self, nodes: int, threads: int) -> None:
        from engine.cluster.nodes import ClusterNode

        self._nodes = [ClusterNode(f"n{number:05}", f"n{number:05}", threads, 1 << 36) for number in range(nodes)]
        self._full = nodes * threads
        self._running: deque[str] = deque()
        self.ended: set[str] = set()
        self.most = 0

    def nodes(self) -> list[Any]:
        return self._nodes

    def ask(self, nodes: Iterable[Any], question: Mapping[str, Any]) -> dict[str, Mapping[str, Any] | str]:
        from engine.cluster import survey

        facts = {name: {} for name in question["facts"]}
        one = survey.Survey(survey.version(), REMOTE, "", {}, {}, {}, {}, facts).to_json()
        return {node.id: one for node in nodes}

    def submit(self, ident: str, node: Any, lane: Any, order: bytes) -> None:
        del node, lane, order
        self._running.append(ident)
        self.most = max(self.most, len(self._running))

    def poll(self, timeout: float) -> list[Any]:
        """NodeAnswer for half of the jobs that run, once the builder has nothing else to do or the nodes are full."""
        from engine.cluster.engine import Piece
        from engine.cluster.orders import NodeAnswer

        if not timeout and len(self._running) < self._full:
            return []
        pieces = []
        for _ in range((len(self._running) + 1) // 2):
            ident = self._running.popleft()
            self.ended.add(ident)
            pieces.append(Piece(ident, answer=NodeAnswer(seconds=1.0).encode()))
        return pieces

    def claim(self, key: str) -> str:
        del key
        return ""

    def release(self, key: str) -> None:
        pass

    def close(self) -> None:
        pass


REMOTE = "file:///pretended"


class PretendedTier:
    """A remote that has the record of every job that has ended, and counts what it is asked."""

    settings = SimpleNamespace(url=REMOTE, pushes=True)

    def __init__(self, store: Any, engine: PretendedEngine) -> None:
        self._store, self._engine = store, engine
        self.requests = 0

    def find(self, key: Any) -> Any:
        from engine import digest
        from engine.digest import Digest
        from engine.key import digest_of
        from engine.store import output
        from engine.store.record import Record

        self.requests += 1
        own = digest_of(key)
        if str(own) not in self._engine.ended:
            return None
        files = {"done": (4, Digest(digest.of_bytes(str(own).encode())))}
        tree = output.tree(files)
        record = Record(
            key=key, artifact=tree, files=files, report={}, report_version=1, seconds=1.0, peak_bytes=1,
            machine={}, made_at=time.time(), log="", job="", step="",
            binding=output.binding(step="", key=own, tree=tree, report={}), trace="", gaps=(), anonymous_bytes=1,
            origin={"remote": REMOTE, "signer": ""},
        )  # fmt: skip
        with self._store.adding():
            self._store.adopt({own: b"pretended"}, [record])
        return record

    def receive(self, key: Any, raw: bytes) -> Any:
        raise AssertionError(f"{len(raw)} bytes came with the answer about {key}")

    def counts_for(self, record: Any) -> bool:
        del record
        return True

    def bring(self, record: Any) -> None:
        raise AssertionError(f"the bytes of {record.job} are asked for")

    def gather(self, key: Any) -> None:
        pass

    def look_again(self) -> None:
        pass

    def push_new(self, record: Any, *, earlier: Sequence[Any]) -> None:
        pass

    def pulse(self) -> bool:
        return False

    def wait(self) -> None:
        return None

    def summary(self) -> str:
        return ""


def main() -> None:
    """Run the loop once for each number of jobs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1_000, 10_000], help="numbers of jobs (1000 10000)")
    parser.add_argument("--nodes", type=int, default=1000, help="pretended nodes (1000)")
    parser.add_argument("--threads", type=int, default=4, help="jobs that a node runs at a time (4)")
    options = parser.parse_args()
    os.environ["RECIPE_TRUST_CACHE"] = "1"
    rows = []
    for jobs in options.jobs:
        # A process of its own for each row, so that each has its own peak memory.
        with ProcessPoolExecutor(1, get_context("spawn")) as one:
            rows.append([str(each) for each in one.submit(_measured, jobs, options.nodes, options.threads).result()])
            print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    heads = ("jobs", "nodes", "plan", "build", "per job", "peak memory", "requests", "most at a time")
    print(table(heads, rows))
    print(machine())


def _measured(jobs: int, nodes: int, threads: int) -> Sequence[object]:
    from cluster_steps import After, Numbered
    from small_builds import project_in

    from engine.builder import jobs as planning
    from engine.builder.lookup import Lookup
    from engine.builder.loop import run
    from engine.builder.options import Options
    from engine.builder.variant import PlannedVariant
    from engine.cluster.executor import ClusterExecutor
    from engine.events import Ended
    from engine.recipe.load import load
    from engine.store.store import Store

    with tempfile.TemporaryDirectory() as scratch:
        folder = project_in(Path(scratch))
        began = time.perf_counter()
        [loaded] = load(folder / "r.yaml")
        steps = {step.step_name(): step for step in (Numbered, After)}
        recipes = [loaded.recipe.model_copy(update={"name": f"r{number}"}) for number in range(jobs // len(steps))]
        variants = [
            PlannedVariant(loaded._replace(recipe=recipe, variant=recipe.name), planning.plan(recipe, steps))
            for recipe in recipes
        ]
        planned = time.perf_counter()
        lookup = Lookup(Store(folder / "cache"))
        engine = PretendedEngine(nodes, threads)
        tier = lookup.store.tier = PretendedTier(lookup.store, engine)
        executor = ClusterExecutor(engine, lookup, [job for each in variants for job in each.jobs], print)
        events = run(variants, lookup, executor, Options(out=folder / "build"))
        states = [event.state for event in events if isinstance(event, Ended)]
        ended = time.perf_counter()
        assert states == ["built"] * jobs, set(states)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        jobs, nodes, f"{planned - began:.1f} s", f"{ended - planned:.1f} s",
        f"{(ended - planned) / jobs * 1e3:.2f} ms", f"{peak:.0f} MiB", tier.requests, engine.most,
    )  # fmt: skip


if __name__ == "__main__":
    main()
