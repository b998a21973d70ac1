"""A Ray cluster with the settings of docs/cluster.md: nodes that die or fall silent, and two builders at once."""

import json
import os
import secrets
import signal
import statistics
import subprocess
import sys
import time

import cluster_steps as steps
import pytest
from ray_cluster import RayCluster, documented_settings
from small_builds import project_in, variant

from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.cluster.executor import ClusterExecutor
from engine.cluster.ray_engine import RayEngine
from engine.events import Ended, Started
from engine.store.opening import open_store
from engine.system import processes

pytestmark = [pytest.mark.slow, pytest.mark.whole]

MINUTE = 60.0
"""Seconds in which the job of a lost node begins on another one."""
ROUNDS, VARIANTS = 3, 60
"""How often each is measured, in turns, and how many variants are built."""


class Cluster:
    """Two nodes with a CPU each, and their remote."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "remote").mkdir()
        self.ray = RayCluster(settings=documented_settings())
        self.environment = {
            "RECIPE_REMOTE": f"file://{folder / 'remote'}", "RECIPE_TRUST": "none", "RECIPE_TRUST_CACHE": "1",
            **{name: self.ray.environment[name] for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "PYTHONPATH")},
        }  # fmt: skip
        for name in ("one", "two"):
            self.ray.add(name, environment={"RECIPE_REMOTE": self.environment["RECIPE_REMOTE"]})


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.ray.close()


@pytest.mark.parametrize("loss", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "silent"])
def test_the_job_of_a_lost_node_begins_on_another_within_a_minute(cluster, monkeypatch, loss):
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    project = cluster.folder / "project"
    project.mkdir()
    lookup = Lookup(open_store(project_in(project) / "cache", project=project))
    job = variant(project, steps.Tell(number=secrets.randbelow(1 << 30), seconds=5))
    executor = ClusterExecutor(RayEngine(cluster.ray.address), lookup, job.jobs)
    begins, states, stopped = {}, [], []
    try:
        for event in run([job], lookup, executor, Options(out=project / "build")):
            if isinstance(event, Started):
                begins[event.node] = time.monotonic()
            if isinstance(event, Started) and len(begins) == 1:
                node = cluster.ray.nodes[event.node].pid
                stopped = [node, *processes.descendants(node)]
                for pid in stopped:
                    os.kill(pid, loss)
            if isinstance(event, Ended):
                states.append(event.state)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT) if os.path.exists(f"/proc/{pid}") else None
    assert states == ["built"]
    first, second = begins.values()
    assert len(stopped) > 2  # raylet, and the process of the job
    assert second - first < MINUTE


def test_two_builders_of_the_same_variants_cost_at_most_half_more_than_one(cluster):
    timed(cluster, "first", 1)  # it fills the caches of bytecode
    one, two = [], []
    for turn in range(ROUNDS):
        one.append(timed(cluster, f"{turn}-one", 1))
        two.append(timed(cluster, f"{turn}-two", 2))
    assert statistics.median(two) <= 1.5 * statistics.median(one), (one, two)


def timed(cluster, name, count):
    """Return the seconds of the slowest of some builders, started together, of which each key is built once."""
    meeting, salt = cluster.folder / name, secrets.randbelow(1 << 30)
    meeting.mkdir()
    builders = []
    for number in range(count):
        folder = meeting / f"builder{number}"
        folder.mkdir()
        own = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(cluster.folder / "user")}
        words = [folder, cluster.ray.address, salt, VARIANTS, 0.2, meeting]
        builders.append(
            subprocess.Popen(
                [sys.executable, "-m", "timed_builder", *map(str, words)],
                env={**os.environ, **cluster.environment, **own}, stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
        while not (meeting / str(builders[-1].pid)).exists():
            assert builders[-1].poll() is None
            time.sleep(0.05)
    (meeting / "go").touch()
    answers = [json.loads(builder.communicate()[0].splitlines()[-1]) for builder in builders]
    ended = [state for answer in answers for state in answer["ended"]]
    assert (ended.count("built"), ended.count("cached")) == (2 * VARIANTS, 2 * VARIANTS * (count - 1))
    return max(answer["seconds"] for answer in answers)
