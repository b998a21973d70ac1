"""The machines of a cluster as a build knows them: the nodes that can run its jobs, and why others cannot."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from engine.builder.executors.executor import Demand
from engine.builder.live_rows import MachineRows
from engine.cluster import nodes as placing
from engine.cluster import survey
from engine.cluster.nodes import ClusterNode, Nodes
from engine.cluster.survey import Question, unusable
from engine.errors import StepError, UserError
from engine.text import sizes

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.cluster.ray_engine import RayEngine
    from engine.step import Hardware

_LOOK_SECONDS = 5.0
"""The time between two looks for nodes that came or left."""
_SUCCESSOR_SECONDS = 60.0
"""How long a build that has lost its last node waits for a new one."""
_PAUSE_SECONDS = 1.0


def surveyed(engine: RayEngine, nodes: Sequence[ClusterNode], question: Question) -> Sequence[ClusterNode]:
    """Ask nodes for their surveys, and return the nodes with them."""
    answers = engine.ask(nodes, asdict(question)) if nodes else {}
    for node in nodes:
        node.survey = survey.read(answers.get(node.id, "no answer"))
    return nodes


def judge(node: ClusterNode, *, remote: str, locked: Mapping[str, str]) -> None:
    """Leave out a node that could run jobs, if a build with a remote, and the tools of its lock, does not use it."""
    own = node.survey
    if own is None or node.trouble:
        return
    differ = [name for name, value in own.tools.items() if locked.get(name, value) != value]
    if own.remote != remote:
        node.survey = unusable(f"the node has the remote {own.remote}, not {remote}")
    elif differ:
        rows = "; ".join(f"{name} {own.tools[name]}, and the lock {locked[name]}" for name in differ)
        node.survey = unusable(f"the node has {rows}")


class ClusterMachines:
    """The nodes of a cluster that use the build's remote; they are the `Machines` of its look-up."""

    def __init__(
        self,
        engine: RayEngine,
        jobs: Iterable[Job],
        *,
        remote: str,
        locked: Mapping[str, str] | None = None,
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Ask all nodes what they have.

        Raises UserError if no job could run on any of them, and for nodes with another version of this program. Such a
        node that comes later is left out, and `notice` says so. `locked` has the tools of a lock: a node with another
        version of one of them runs no job.
        """
        self.nodes = Nodes()
        self._engine = engine
        self._remote = remote
        self._locked = locked or {}
        self._question = Question.about(jobs)
        self._notice = notice
        self._left_out: dict[str, ClusterNode] = {}
        self._alive: frozenset[str] = frozenset()
        """The ids of the nodes that were in the cluster at the last look."""
        self._changed = False
        self._has_lost = False
        """Whether a node was lost since the last look."""
        self._has_waited = False
        """Whether this build has waited in vain for a successor of its last node."""
        if others := self._look():
            nodes = "1 node has" if len(others) == 1 else f"{len(others)} nodes have"
            raise UserError(
                f"{nodes} another version of recipe or Python: their code could give other results",
                [*(f"node {node.name}: {node.other_version}" for node in others), f"this machine: {survey.version()}"],
                "install the same versions on this machine and on all nodes, or take these nodes out of the cluster; "
                "`recipe doctor --on ADDRESS` shows all nodes",
            )
        if not len(self.nodes):
            raise UserError(
                f"no node of {engine.shown} can run jobs",
                self._lacks(),
                "`recipe doctor --on ADDRESS --for RECIPE` says more",
            )

    # -- for the look-up ------------------------------------------------------------------------------------

    def waits_for(self, job: Job) -> Hardware | None:
        """Return the hardware that a job needs and every node lacks, or None. A lost node may have a successor."""
        lane = placing.lane_of(job)
        if self._has_lost and not self.nodes.pools(lane):
            self._look_for_one()
        return None if self.nodes.pools(lane) else job.step.hardware()

    def advice(self, hardware: Hardware) -> str:
        """Return what the nodes lack for some hardware."""
        return "; ".join(self._lacks(str(hardware))) or f"{self._engine.shown} has no node"

    def kinds(self, job: Job, lane: Hashable = None) -> Sequence[str]:
        """Return the kinds of nodes that can run a job; first that to which it would go now."""
        lane = lane if isinstance(lane, Demand) else placing.lane_of(job)
        if not self.nodes.pools(lane):
            self._look_for_one()
        if kinds := self.nodes.kinds(lane):
            return kinds
        if not len(self.nodes):
            hint = "start a node: the next build with the same remote goes on with what the nodes have pushed"
            raise StepError(f"no node of {self._engine.shown} is left for {job.name!r}", self._lacks(), hint)
        raise StepError(f"no node of {self._engine.shown} can run {job.name!r}", self._lacks(lane.hardware))

    def rows(self, job: Job, kind: str) -> MachineRows:
        """Return the values of a kind of node that are rows of a job's key."""
        lane, step = placing.lane_of(job), job.step
        own = next(node.survey for node in self.nodes.pools(lane)[kind] if node.survey is not None)
        facts = own.facts[lane.hardware]
        return MachineRows(
            tools={name: own.tools[name] for name in step.tools_used()},
            facts={name: facts[name] for name in step.facts_used()},
            variables={name: own.variables[name] for name in step.variables if name in own.variables},
        )

    # -- nodes that come and leave --------------------------------------------------------------------------

    def look_now_and_then(self) -> None:
        """Look for nodes that came or left, if the last look was a while ago."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self.look()

    def look(self) -> None:
        """Look for nodes that came or left, and ask new ones what they have."""
        for node in self._look():
            self._notice(f"node {node.name} came and is not used: {node.trouble}")

    def _look_for_one(self) -> None:
        """Look for nodes. A build that has lost its last node waits for a new one, once, until it gives up."""
        self.look()
        if len(self.nodes) or self._has_waited:
            return
        self._notice(
            f"no node of {self._engine.shown} is left: the build waits {_SUCCESSOR_SECONDS:.0f} s for a new one"
        )
        ends = time.monotonic() + _SUCCESSOR_SECONDS
        while not len(self.nodes) and time.monotonic() < ends:
            time.sleep(_PAUSE_SECONDS)
            self.look()
        self._has_waited = not len(self.nodes)

    def has_left(self, node: ClusterNode) -> bool:
        """Say whether a node was no part of the cluster any more at the last look."""
        return node.id not in self._alive

    def _look(self) -> list[ClusterNode]:
        """Do the same, and return new nodes that have another version of this program or of Python."""
        self._looked = time.monotonic()
        alive = {node.id: node for node in self._engine.nodes()}
        self._alive = frozenset(alive)
        for node in self.nodes:
            if node.id not in alive:
                self.leave_out(node, "it has left the cluster")
        new = [node for name, node in alive.items() if name not in self.nodes and name not in self._left_out]
        for node in surveyed(self._engine, new, self._question):
            judge(node, remote=self._remote, locked=self._locked)
            if node.trouble:
                self._left_out[node.id] = node
            else:
                self.nodes.add(node)
                self._changed, self._has_waited = True, False
        self._has_lost = False
        return [node for node in new if node.other_version]

    def leave_out(self, node: ClusterNode, reason: str) -> None:
        """Give a node no further job in this build."""
        if self.nodes.remove(node.id) is not None:
            self._changed = self._has_lost = True
            self._left_out[node.id] = replace(node, survey=unusable(reason))

    def has_changed(self) -> bool:
        """Say, once for each change, whether nodes came or left."""
        changed, self._changed = self._changed, False
        return changed

    def _lacks(self, hardware: str = survey.NO_HARDWARE) -> list[str]:
        return placing.lack_lines([*self.nodes, *self._left_out.values()], hardware)


@dataclass(frozen=True)
class Overview:
    """What a cluster has. `nodes` has a row for each node: its name, what it has, and why no job can run there, if so.

    `never` maps the name of a job to what each node lacks for it.
    """

    nodes: Sequence[tuple[str, str, str]]
    never: Mapping[str, Sequence[str]]


def overview(engine: RayEngine, jobs: Sequence[Job], tools: Iterable[str], *, remote: str = "") -> Overview:
    """Return what a cluster has, also for some jobs of a build with a remote. Raises UserError."""
    own = Question.about(jobs)
    every = surveyed(engine, engine.nodes(), replace(own, tools=(*own.tools, *tools)))
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
