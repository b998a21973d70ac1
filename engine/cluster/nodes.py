"""The nodes of a cluster as pools: nodes on which a job has one key, among which the cluster's engine chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.builder.executors.executor import Demand
from engine.cluster.survey import NO_HARDWARE, Survey, version

if TYPE_CHECKING:
    from engine.builder.job import Job


@dataclass(eq=False)
class ClusterNode:
    """A node of a cluster: `threads` are the CPUs and `memory` the bytes that the cluster's engine has for jobs."""

    id: str
    name: str
    threads: int
    memory: int
    gpus: float = 0.0
    """The number of GPUs of which the engine counts the use; 0 for a node whose GPUs it does not count."""
    survey: Survey | None = None
    """None until the node has answered."""

    @property
    def trouble(self) -> str:
        """Why no job can run on the node; "" if jobs can."""
        if self.survey is None:
            return "the node has not answered"
        if self.other_version:
            return f"the node has {self.other_version}, and this machine {version()}"
        return self.survey.trouble

    @property
    def other_version(self) -> str:
        """The version of this program and of Python that the node has, if it is another one than here; else ""."""
        return "" if self.survey is None or self.survey.version == version() else self.survey.version

    @property
    def kind(self) -> str:
        """The kind of the node: a job has the same key on each node of one kind."""
        return self.survey.kind if self.survey is not None else ""

    def suits(self, lane: Demand) -> bool:
        """Say whether the node could run a job of a lane if nothing else ran there."""
        if self.survey is None or self.trouble:
            return False
        fits = lane.threads <= self.threads and lane.memory <= self.memory
        return fits and (lane.hardware == NO_HARDWARE or self.survey.lacks.get(lane.hardware) == "")


class Nodes:
    """The nodes that a build uses, and the lanes of its jobs that are under way on nodes of each kind.

    A build sends no more jobs to the nodes of a kind than they have CPUs, memory and GPUs for, all nodes together. On
    which of them a job runs, and when, the cluster's engine says.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, ClusterNode] = {}
        self._under_way: dict[str, Counter[Demand]] = {}
        self._pools: dict[Demand, Mapping[str, Sequence[ClusterNode]]] = {}
        """The nodes that suit a lane, by their kind."""

    def __iter__(self) -> Iterator[ClusterNode]:
        return iter(list(self._nodes.values()))

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def add(self, node: ClusterNode) -> None:
        """Add a node that has come."""
        self._nodes[node.id] = node
        self._pools.clear()

    def remove(self, name: str) -> ClusterNode | None:
        """Remove a node that has left, or that is not what it was; None for one that is not here."""
        self._pools.clear()
        return self._nodes.pop(name, None)

    def fitted(self, lane: Demand) -> Demand:
        """Return a lane that asks for no more threads and memory than the largest node with its hardware has.

        What a job needs is an estimate: a job that seems too large for every node gets the largest one for itself. A
        job that runs alone takes all threads of its node, and goes to a node with most of them.
        """
        every = [node for pool in self.pools(lane._replace(threads=0, memory=0)).values() for node in pool]
        threads = max((node.threads for node in every if node.memory >= lane.memory), default=0)
        largest = max(every, key=lambda node: (node.memory, node.threads), default=None)
        if largest is None:
            return lane
        if not threads:
            return lane._replace(threads=largest.threads, memory=largest.memory)
        return lane._replace(threads=threads if lane.alone else min(lane.threads, threads))

    def pools(self, lane: Demand) -> Mapping[str, Sequence[ClusterNode]]:
        """Return the nodes that could run a job of a lane if nothing else ran there, by their kind."""
        if lane not in self._pools:
            pools: dict[str, list[ClusterNode]] = {}
            for node in self._nodes.values():
                if node.suits(lane):
                    pools.setdefault(node.kind, []).append(node)
            self._pools[lane] = pools
        return self._pools[lane]

    def kinds(self, lane: Demand) -> Sequence[str]:
        """Return the kinds of the nodes that could run a job of a lane, the one with most to spare first.

        A job that needs no hardware goes to nodes for whose GPU nobody waits, if they have room.
        """
        pools = self.pools(lane)
        if len(pools) == 1:
            return [*pools]
        return sorted(
            pools, key=lambda kind: (not self._has_room(kind, lane), _serves_others(pools[kind][0], lane), kind)
        )

    def has_room(self, lane: Demand) -> bool:
        """Say whether the nodes of any kind have room for one more job of a lane."""
        return any(self._has_room(kind, lane) for kind in self.pools(lane))

    def begin(self, kind: str, lane: Demand) -> None:
        """Note that a job of a lane is sent to the nodes of a kind."""
        self._under_way.setdefault(kind, Counter())[lane] += 1

    def end(self, kind: str, lane: Demand) -> None:
        """Note that a job of a lane has ended on a node of a kind."""
        self._under_way[kind][lane] -= 1

    def _has_room(self, kind: str, lane: Demand) -> bool:
        nodes = self.pools(_ALL)[kind]
        lanes = Counter(self._under_way.get(kind)) + Counter([lane])
        threads = sum(each.threads * count for each, count in lanes.items())
        memory = sum(each.memory * count for each, count in lanes.items())
        gpus = sum(each.gpus * count for each, count in lanes.items())
        return (
            threads <= sum(node.threads for node in nodes)
            and memory <= sum(node.memory for node in nodes)
            and (not all(node.gpus for node in nodes) or gpus <= sum(node.gpus for node in nodes))
        )


_ALL = Demand(NO_HARDWARE, 0, 0, alone=False)
"""The lane of a job that could run on any node."""


@dataclass(frozen=True)
class Piece:
    """News about the run `ident`: that it has begun, a part of its log, its answer, or that the run is lost."""

    ident: str
    node: str = ""
    """The id of the node on which the run has begun."""
    log: bytes = b""
    answer: bytes | None = None
    lost: str = ""
    """Why there will be no answer."""
    node_is_gone: bool = False
    """Whether the node, and not only the run, is lost."""


def lane_of(job: Job, demand: Demand | None = None) -> Demand:
    """Return what a job takes of a node; without a demand, what every job like it takes: the hardware and a thread."""
    hardware = job.step.hardware() if job.traits.needs_hardware else None
    demand = demand or Demand(NO_HARDWARE, 1, 0, job.traits.exclusive)
    return demand._replace(hardware=NO_HARDWARE if hardware is None else str(hardware))


def _serves_others(node: ClusterNode, lane: Demand) -> bool:
    """Say whether a job without hardware would take the place of jobs that need the node's hardware."""
    return not lane.hardware and node.survey is not None and any(lack == "" for lack in node.survey.lacks.values())


def lack_lines(nodes: Iterable[ClusterNode], hardware: str) -> list[str]:
    """Return what each node lacks for jobs with some hardware as lines of an error: "t4-1: it may not push"."""
    reasons = (
        (node.name, node.trouble or (node.survey.lacks.get(hardware, "") if node.survey else "")) for node in nodes
    )
    return [f"{name}: {reason}" for name, reason in reasons if reason]
