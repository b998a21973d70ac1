"""What a cluster has: which node has which GPU and tools, and which jobs could never run there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.cluster import nodes as placing
from engine.cluster.machines import judge, surveyed
from engine.cluster.nodes import ClusterNode, Nodes
from engine.cluster.ray_engine import RayEngine
from engine.cluster.survey import Question
from engine.text import sizes

if TYPE_CHECKING:
    from engine.builder.job import Job


@dataclass(frozen=True)
class Overview:
    """What a cluster has. `nodes` has a row for each node: its name, what it has, and why no job can run there, if so.

    `never` maps the name of a job to what each node lacks for it.
    """

    nodes: Sequence[tuple[str, str, str]]
    never: Mapping[str, Sequence[str]]


def of(address: str, jobs: Sequence[Job], tools: Iterable[str], *, remote: str = "") -> Overview:
    """Return what the cluster at an address has, also for some jobs of a build with a remote.

    Raises UsageError and UserError.
    """
    own = Question.about(jobs)
    question = Question((*own.tools, *tools), own.variables, own.hardware, own.facts)
    engine = RayEngine(address)
    try:
        every = surveyed(engine, engine.nodes(), question)
    finally:
        engine.close()
    rows, usable = [], Nodes()
    for node in sorted(every, key=lambda each: each.name):
        has = ", ".join(_equipment(node))
        if remote:
            judge(node, remote=remote, locked={})
        if not node.trouble:
            usable.add(node)
        rows.append((node.name, has, node.trouble))
    never = {}
    for job in jobs:
        lane = placing.lane_of(job)
        if not usable.pools(lane):
            never[f"{job.recipe} {job.name}"] = placing.lack_lines(every, lane.hardware)
    return Overview(rows, never)


def _equipment(node: ClusterNode) -> list[str]:
    """Return what a node has, in words."""
    has = [f"{node.threads} CPUs", sizes.binary(node.memory)]
    if node.survey is None:
        return has
    machine = node.survey.machine
    has.append(f"GPU: {machine.get('gpu.name', 'unknown')}")
    if machine.get("gpu.driver", "none") != "none":
        has.append(f"driver {machine['gpu.driver']}")
    has += [f"{tool} {version}" for tool, version in node.survey.tools.items() if version != "missing"]
    return [*has, f"remote {node.survey.remote}"] if node.survey.remote else has
