"""A Ray cluster on the loopback, whose nodes share a folder as their remote."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import recipe_program as program

sys.path += [str(program.ROOT), str(program.ROOT / "tests" / "support")]
"""Behind the folder of benchmarks, which has a `program`, too."""


@dataclass(frozen=True)
class Loopback:
    """A cluster that runs, and what a builder needs in its environment to use it."""

    remote: Path
    environment: dict[str, str]


@contextmanager
def cluster(nodes: int, folder: Path) -> Iterator[Loopback]:
    """Start a head and nodes with one CPU each, whose stores and remote are in `folder`; end them at the end."""
    from ray_cluster import RayCluster

    remote = folder / "remote"
    remote.mkdir()
    shared = {"RECIPE_REMOTE": f"file://{remote}", "RECIPE_TRUST": "none", "RECIPE_TRUST_CACHE": "1"}
    ray = RayCluster()
    try:
        for number in range(nodes):
            ray.add(f"n{number}", environment={**shared, "RECIPE_NODE_STORE": str(folder / f"n{number}")})
        names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "PYTHONPATH", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
        own = {name: ray.environment[name] for name in names}
        yield Loopback(remote, {**own, **shared, "RAY_ADDRESS": ray.gcs})
    finally:
        ray.close()
