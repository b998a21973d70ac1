"""Many variants of a small model on a cluster: whether a node is idle while a job could run, beside one machine."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import loopback
import recipe_program as program
from timing import duration, machine, table

LAST = "quantize"
"""The step up to which each variant is built."""


@dataclass
class Watched:
    """What the events of a build tell, each with the time at which it was printed."""

    slots: int
    needs: dict[tuple[str, str], set[tuple[str, str]]] = field(default_factory=dict)
    ended: set[tuple[str, str]] = field(default_factory=set)
    running: set[tuple[str, str]] = field(default_factory=set)
    built: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    idle: float = 0.0
    """The seconds in which a slot was free while a job could run, all slots together."""
    seconds: float = 0.0
    _last: float | None = None

    def see(self, event: Mapping[str, object], now: float) -> None:
        """Take an event into account."""
        if self._last is not None:
            self.idle += (now - self._last) * min(self.slots - len(self.running), self._could_run())
            self.seconds += now - self._last
        name = (str(event.get("recipe")), str(event.get("job")))
        if event["event"] == "plan":
            for job in event["jobs"]:  # type: ignore[attr-defined]
                self.needs[name[0], job["job"]] = {(name[0], each) for each in job["needs"]}
        elif event["event"] == "start":
            self.running.add(name)
            self._last = now if self._last is None else self._last
        elif event["event"] == "end":
            self.running.discard(name)
            self.ended.add(name)
            self.states[str(event["state"])] += 1
            self.built[str(event.get("key"))] += event["state"] == "built"
        self._last = now if self._last is not None else None

    def _could_run(self) -> int:
        return sum(
            needs <= self.ended
            for name, needs in self.needs.items()
            if name not in self.ended and name not in self.running
        )


def main() -> None:
    """Build on the cluster and on this machine in turns, and print a table. Fails where a key was built twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variants", type=int, default=300, help="variants of the model (300)")
    parser.add_argument("--nodes", type=int, default=3, help="nodes of the cluster, and jobs at a time here (3)")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="variants") as scratch,
        loopback.cluster(options.nodes, Path(scratch)) as cluster,
    ):
        project = _project(Path(scratch) / "project", options.variants)
        environment = {**program.environment(), **cluster.environment}
        alone = {name: value for name, value in environment.items() if name != "RECIPE_REMOTE"}
        ways = {
            "on the cluster": (["--on", "auto"], environment),
            "on this machine": (["-j", str(options.nodes)], alone),
        }
        rows = []
        for way, (words, variables) in ways.items():
            watched, peak = _build(project, words, variables, options.nodes, Path(scratch) / f"store {way}")
            twice = [key for key, count in watched.built.items() if count > 1]
            if twice or set(watched.states) != {"built"}:
                sys.exit(f"{way}: states {dict(watched.states)}, keys that were built twice: {twice}")
            share = watched.idle / (watched.seconds * options.nodes)
            jobs = watched.states["built"]
            rows.append((way, str(jobs), duration(watched.seconds), f"{share:.1%}", f"{peak / 2**20:.0f} MiB"))
            print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    heads = ("", "jobs, each key once", "from the first start", "free while a job could run", "memory of the builder")
    print(table((f"{options.variants} variants", *heads[1:]), rows))
    print(f"\n{machine()}")


def _project(folder: Path, count: int) -> Path:
    """Write as many small models, each with weights of its own, and a recipe for each."""
    import graphs
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    folder.mkdir()
    (folder / "pyproject.toml").touch()
    ends = [("x", graphs.FLOAT, ["batch", 64])], [("y", graphs.FLOAT, ["batch", 64])]
    for number in range(count):
        weights = np.random.default_rng(number).standard_normal((64, 64), np.float32)
        graph = graphs.graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])], *ends, [numpy_helper.from_array(weights, "w")]
        )
        onnx.save(graph, folder / f"{number}.onnx")
        (folder / f"{number}.yaml").write_text(
            f"name: v{number}\nmodel: {{source: {number}.onnx}}\nprecision: int8\nprofiles: [{{batch: [1, 2, 8]}}]\n"
        )
    return folder


def _build(
    project: Path, words: Sequence[str], variables: Mapping[str, str], slots: int, store: Path
) -> tuple[Watched, int]:
    """Run a build, and return what it said and the peak memory of its own process in bytes."""
    from engine.system import processes

    recipes = sorted((path.name for path in project.glob("*.yaml")), key=lambda name: int(Path(name).stem))
    command = [*program.command(), "build", *recipes, "--to", LAST, "--cache", str(store), "--json", *words]
    process = subprocess.Popen(command, cwd=project, env=dict(variables), stdout=subprocess.PIPE)
    watched, peak = Watched(slots), 0
    for line in _lines(process):
        watched.see(json.loads(line), time.monotonic())
        peak = max(peak, processes.peak_of(process.pid))  # not wait4's figure, which is also that of all jobs
    if process.wait():
        sys.exit(f"the build failed with exit code {process.returncode}: {dict(watched.states)}")
    return watched, peak


def _lines(process: subprocess.Popen[bytes]) -> Iterable[bytes]:
    if process.stdout is None:
        raise AssertionError("the output of a build goes to a pipe")
    with process.stdout as output:
        yield from output


if __name__ == "__main__":
    main()
