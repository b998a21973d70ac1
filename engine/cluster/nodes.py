"""The nodes of a cluster and what a build has running on them: which node a job goes to."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from engine.cluster.survey import NO_HARDWARE, Survey, version

if TYPE_CHECKING:
    from engine.builder.executors.executor import Demand
    from engine.builder.job import Job


class Lane(NamedTuple):
    """What a job needs of a node: one queue of the build loop for each combination."""

    hardware: str
    """The name of the `Hardware`; "" for none."""
    threads: int
    memory: int
    """Bytes."""
    alone: bool
    """Whether the job runs alone on its node, because it measures time."""

    @property
    def gpus(self) -> int:
        """The number of GPUs that the job takes."""
        return 1 if self.hardware else 0


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
    busy_threads: int = 0
    busy_memory: int = 0
    busy_gpus: int = 0
    jobs: int = 0
    alone: bool = field(default=False)

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

    def suits(self, lane: Lane) -> bool:
        """Say whether the node could run a job of a lane if nothing else ran there."""
        if self.survey is None or self.trouble:
            return False
        fits = lane.threads <= self.threads and lane.memory <= self.memory
        return fits and (lane.hardware == NO_HARDWARE or self.survey.lacks.get(lane.hardware) == "")

    def has_room(self, lane: Lane) -> bool:
        """Say whether a job of a lane can start on the node now."""
        if lane.alone:
            return self.jobs == 0
        free = self.threads - self.busy_threads >= lane.threads and self.memory - self.busy_memory >= lane.memory
        has_gpu = not lane.gpus or not self.gpus or self.gpus - self.busy_gpus >= lane.gpus
        return free and has_gpu and not self.alone

    def begin(self, lane: Lane) -> None:
        """Note that a job of a lane runs on the node."""
        self.jobs += 1
        self.busy_threads += lane.threads
        self.busy_memory += lane.memory
        self.busy_gpus += lane.gpus
        self.alone = lane.alone

    def end(self, lane: Lane) -> None:
        """Note that a job of a lane has ended on the node."""
        self.jobs -= 1
        self.busy_threads -= lane.threads
        self.busy_memory -= lane.memory
        self.busy_gpus -= lane.gpus
        self.alone = False


_Entry = tuple[bool, bool, int, str]
"""Whether a node has no room, whether others wait for its hardware, its free threads (negative), and its name."""


_MOST_ENTRIES = 8
"""The most entries of a ranking for each node."""


class _Ranking:
    """The nodes that suit a lane, the one with most to spare first.

    Ranks change with every job. A node has an entry for each rank that it had; entries of old ranks are thrown away
    when they come to the front, or when there are many.
    """

    def __init__(self, lane: Lane, nodes: Iterable[ClusterNode]) -> None:
        self._lane = lane
        self.nodes = {node.id: node for node in nodes}
        self.kinds = {node.kind: node.survey for node in self.nodes.values() if node.survey is not None}
        self._rank()

    def _rank(self) -> None:
        self._entries = [self._entry(node) for node in self.nodes.values()]
        heapq.heapify(self._entries)

    def _entry(self, node: ClusterNode) -> _Entry:
        free = 0 if node.alone else node.threads - node.busy_threads
        return (not node.has_room(self._lane), not _spares(node, self._lane), -free, node.id)

    def note(self, node: ClusterNode) -> None:
        """Note that a job has begun or ended on a node."""
        if node.id in self.nodes:
            heapq.heappush(self._entries, self._entry(node))
            if len(self._entries) > _MOST_ENTRIES * len(self.nodes):
                self._rank()

    def best(self, kind: str | None) -> ClusterNode | None:
        """Return the first node with room, of some kind if `kind` is one; None if there is none."""
        passed: list[_Entry] = []
        best: ClusterNode | None = None
        while self._entries and best is None:
            entry = heapq.heappop(self._entries)
            node = self.nodes[entry[-1]]
            if entry != self._entry(node) or (passed and entry == passed[-1]):
                continue
            passed.append(entry)
            if entry[0]:
                break  # no other node has room either
            if kind in (None, node.kind):
                best = node
        for entry in passed:
            heapq.heappush(self._entries, entry)
        return best


class Nodes:
    """The nodes that a build uses."""

    def __init__(self) -> None:
        self._nodes: dict[str, ClusterNode] = {}
        self._rankings: dict[Lane, _Ranking] = {}
        self._fitted: dict[Lane, Lane] = {}

    def __iter__(self) -> Iterator[ClusterNode]:
        return iter(list(self._nodes.values()))

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def add(self, node: ClusterNode) -> None:
        """Add a node that has come."""
        self._nodes[node.id] = node
        self._forget()

    def remove(self, name: str) -> ClusterNode | None:
        """Remove a node that has left, or that is not what it was; None for one that is not here."""
        self._forget()
        return self._nodes.pop(name, None)

    def fitted(self, lane: Lane) -> Lane:
        """Return a lane that asks for no more threads and memory than the largest node with its hardware has.

        What a job needs is an estimate: a job that seems too large for every node gets the largest one for itself.
        """
        if lane not in self._fitted:
            every = self.suited(lane._replace(threads=0, memory=0))
            threads = max((node.threads for node in every if node.memory >= lane.memory), default=0)
            largest = max(every, key=lambda node: (node.memory, node.threads), default=None)
            if largest is None:
                self._fitted[lane] = lane
            elif threads:
                self._fitted[lane] = lane._replace(threads=min(lane.threads, threads))
            else:
                self._fitted[lane] = lane._replace(threads=largest.threads, memory=largest.memory)
        return self._fitted[lane]

    def _forget(self) -> None:
        """Forget what depends on which nodes there are."""
        self._rankings.clear()
        self._fitted.clear()

    def begin(self, node: ClusterNode, lane: Lane) -> None:
        """Note that a job of a lane runs on a node."""
        node.begin(lane)
        self._note(node)

    def end(self, node: ClusterNode, lane: Lane) -> None:
        """Note that a job of a lane has ended on a node."""
        node.end(lane)
        self._note(node)

    def suited(self, lane: Lane) -> Collection[ClusterNode]:
        """Return the nodes that could run a job of a lane."""
        return self._ranking(lane).nodes.values()

    def kinds(self, lane: Lane) -> Mapping[str, Survey]:
        """Return the kinds of the nodes that could run a job of a lane, each with the survey of such a node."""
        return self._ranking(lane).kinds

    def best(self, lane: Lane, *, kind: str | None = None) -> ClusterNode | None:
        """Return the node with room for a job of a lane that has most to spare; None if no node has room.

        A job that needs no hardware goes to a node whose GPU nobody waits for, if there is one. `kind` is the kind of
        node for which the key of the job was computed.
        """
        return self._ranking(lane).best(kind)

    def _ranking(self, lane: Lane) -> _Ranking:
        if lane not in self._rankings:
            self._rankings[lane] = _Ranking(lane, [node for node in self._nodes.values() if node.suits(lane)])
        return self._rankings[lane]

    def _note(self, node: ClusterNode) -> None:
        for ranking in self._rankings.values():
            ranking.note(node)


def lane_of(job: Job, demand: Demand | None = None) -> Lane:
    """Return what a job needs of a node; without a demand, what every job like it needs: the hardware and a thread."""
    hardware = job.step.hardware() if job.traits.needs_hardware else None
    threads, memory, alone = demand or (1, 0, job.traits.exclusive)
    return Lane(NO_HARDWARE if hardware is None else str(hardware), threads, memory, alone)


def _spares(node: ClusterNode, lane: Lane) -> bool:
    """Say whether a job does not take the place of jobs that need the node's hardware."""
    return bool(lane.hardware) or node.survey is None or not any(lack == "" for lack in node.survey.lacks.values())


def lacks(nodes: Iterable[ClusterNode], hardware: str) -> Mapping[str, str]:
    """Return what each node lacks for jobs with some hardware, by the node's name."""
    every = {}
    for node in nodes:
        reason = node.trouble or (node.survey.lacks.get(hardware, "") if node.survey else "")
        if reason:
            every[node.name] = reason
    return every


def lack_lines(nodes: Iterable[ClusterNode], hardware: str) -> list[str]:
    """Return what each node lacks for jobs with some hardware as lines of an error: "t4-1: it may not push"."""
    return [f"{name}: {reason}" for name, reason in lacks(nodes, hardware).items()]
