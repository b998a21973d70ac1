"""Ray as the engine of a cluster. Ray itself comes from `ray_connection`."""

from __future__ import annotations

import atexit
import contextlib
import functools
import getpass
import importlib
import os
import socket
import time
import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from engine.builder.executors.executor import Demand
from engine.cluster import node as node_side
from engine.cluster.nodes import ClusterNode, Piece
from engine.cluster.ray_connection import connected, first_line
from engine.errors import UserError

_NAMESPACE = "recipe"
_TABLE = "claims of builders that live"
"""The name of the claim table. A table outlives builders: one with other methods needs another name."""
_CONNECT_SECONDS = 5.0
_ASK_SECONDS = 60.0
_FIRST_SECONDS = 180.0
"""How much longer a build waits for the first answer of all: a node starts a process, which loads its code."""
_LOOK_SECONDS = 5.0
"""The time between two looks for the head while nodes answer."""
_LOG_SECONDS = 0.5
"""The shortest time between two questions for pieces of logs."""


class Journal:
    """Keeps what nodes say about runs until the builder takes it. An actor of the cluster."""

    def __init__(self) -> None:
        self._pieces: list[tuple[str, str, bytes]] = []

    def add(self, ident: str, node: str, piece: bytes = b"") -> None:
        """Keep a piece of the log of a run, or that the run has begun on a node."""
        self._pieces.append((ident, node, piece))

    def take(self) -> list[tuple[str, str, bytes]]:
        """Return all pieces, and forget them."""
        pieces, self._pieces = self._pieces, []
        return pieces


class ClaimTable:
    """Which builder has which key: of all builders in a cluster, one runs the job of a key. An actor of the cluster.

    If the table is lost, two builders may build one key.
    """

    def __init__(self, lives: Callable[[str], bool] | None = None) -> None:
        self._lives = lives or _lives
        self._holders: dict[str, str] = {}

    def claim(self, key: str, builder: str) -> str:
        """Give a key to a builder and return ""; or return the builder that has the key."""
        holder = self._holders.get(key, builder)
        if holder != builder and self._lives(holder):
            return holder
        self._holders[key] = builder
        return ""

    def release(self, key: str, builder: str) -> None:
        """Take back a key, if the builder has it."""
        if self._holders.get(key) == builder:
            del self._holders[key]


def _lives(builder: str) -> bool:
    """Say whether a builder still has its journal, which Ray ends with the builder."""
    import ray

    try:
        ray.get_actor(builder, namespace=_NAMESPACE)
    except ValueError:
        return False
    return True


def _run(ident: str, order: bytes, journal: Any) -> tuple[str, bytes]:
    import ray

    node = ray.get_runtime_context().get_node_id()
    journal.add.remote(ident, node)
    return node, node_side.run_order(order, lambda piece: journal.add.remote(ident, node, piece))


def _survey(question: Mapping[str, Any]) -> Mapping[str, Any]:
    return node_side.answer_survey(question)


def _named(code: Any) -> Any:
    """Return a function or class, which nodes then import from the module `recipe_build.nodes`.

    Ray puts the builder's folder first on the import path of nodes. There a user's own `engine` may lie.
    """
    code.__module__ = "recipe_build.nodes"
    importlib.import_module(code.__module__)  # Ray sends the code itself where the module is not imported
    return code


P = ParamSpec("P")
T = TypeVar("T")


def _while_connected(
    method: Callable[Concatenate[RayEngine, P], T],
) -> Callable[Concatenate[RayEngine, P], T]:
    """Let a method raise UserError where Ray's client has lost the cluster, and has looked for it for half a minute."""

    @functools.wraps(method)
    def call(engine: RayEngine, /, *arguments: P.args, **named: P.kwargs) -> T:
        try:
            return method(engine, *arguments, **named)
        except (ConnectionError, engine.lost_cluster) as error:
            engine.has_lost_cluster = True
            raise UserError(
                f"the cluster {engine.shown} has gone",
                [first_line(error)],
                "the next build on a cluster with the same remote goes on with what the nodes have pushed",
            ) from None

    return call


class RayEngine:
    """A Ray cluster. Each job is a task for the nodes on which its key is right, with the CPUs and memory of its lane.

    Ray counts what the tasks of all builders take, so that a node is never oversubscribed, even by two builds.
    """

    def __init__(self, address: str) -> None:
        """Connect to a cluster: `auto`, or `ray://HOST:PORT` of a Ray client server.

        Raises UsageError for an address that is none, and UserError for a cluster that does not answer.
        """
        self.shown = address
        self._ray, self._head, self.warning = connected(address, namespace=_NAMESPACE)
        self.lost_cluster: type[Exception] = self._ray.exceptions.RaySystemError
        self.has_lost_cluster = False
        self.builder = f"{getpass.getuser()}@{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex[:6]}"
        remote = self._ray.remote
        self._task = remote(max_retries=0)(_named(_run))
        self._survey = remote(max_retries=0, num_cpus=0)(_named(_survey))
        journal = remote(num_cpus=0, resources=_HEAD)(_named(Journal))
        self._journal = journal.options(name=self.builder, namespace=_NAMESPACE).remote()
        table = remote(num_cpus=0, resources=_HEAD, max_restarts=-1)(_named(ClaimTable))
        self._claims = table.options(
            name=_TABLE, namespace=_NAMESPACE, get_if_exists=True, lifetime="detached"
        ).remote()
        self._runs: dict[Any, str] = {}
        """The names of the runs that have not ended, by their references of Ray."""
        self._pieces: Any = None
        self._last_question = 0.0
        self._has_answers = False
        self._tasks_on: dict[tuple[Hashable, ...], Any] = {}
        """The task of a job by its nodes, CPUs, memory and GPUs: Ray takes long to make one."""
        self._is_closed = False

    @_while_connected
    def nodes(self) -> list[ClusterNode]:
        """Return the nodes that are alive, without their surveys."""
        self._head.look()
        alive = [each for each in self._ray.nodes() if each["Alive"]]
        names = [_name(each) for each in alive]
        return [
            ClusterNode(
                id=each["NodeID"],
                name=name if names.count(name) == 1 else f"{name} {each['NodeID'][:6]}",
                threads=int(each["Resources"].get("CPU", 0)),
                memory=int(each["Resources"].get("memory", 0)),
                gpus=float(each["Resources"].get("GPU", 0)),
            )
            for each, name in zip(alive, names, strict=True)
            if each["Resources"].get("CPU", 0)
        ]

    @_while_connected
    def ask(self, nodes: Iterable[ClusterNode], question: Mapping[str, Any]) -> dict[str, Mapping[str, Any] | str]:
        """Ask nodes for their surveys, for at most a minute; a text says why a node has not answered.

        Nothing can run before the first node of the cluster has answered. That one may take longer.
        """
        refs = {
            node.id: self._on(self._survey, [node], gpus=_SHARE if node.gpus else 0).remote(question) for node in nodes
        }
        ready = self._waited([*refs.values()], count=len(refs), seconds=_ASK_SECONDS)
        if refs and not ready and not self._has_answers:
            ready = self._waited([*refs.values()], count=1, seconds=_FIRST_SECONDS)
        self._has_answers = self._has_answers or bool(ready)
        answers: dict[str, Mapping[str, Any] | str] = {}
        for name, ref in refs.items():
            try:
                answers[name] = self._ray.get(ref) if ref in ready else "no answer in time"
            except self._ray.exceptions.RayError as error:
                answers[name] = _cause(error)
        return answers

    @_while_connected
    def submit(self, ident: str, nodes: Sequence[ClusterNode], lane: Demand, order: bytes) -> None:
        """Let an order run on one of some nodes, as soon as one has what its lane needs."""
        gpus = lane.gpus if all(node.gpus for node in nodes) else 0
        place = (*(node.id for node in nodes), lane.threads, lane.memory, gpus)
        if place not in self._tasks_on:
            self._tasks_on[place] = self._on(self._task, nodes, cpus=lane.threads, memory=lane.memory, gpus=gpus)
        self._runs[self._tasks_on[place].remote(ident, order, self._journal)] = ident

    @_while_connected
    def poll(self, timeout: float) -> list[Piece]:
        """Wait up to `timeout` seconds for pieces, and return those that have come."""
        if not self._runs:
            time.sleep(timeout)
            return []
        ready, _ = self._ray.wait([*self._runs], timeout=timeout)
        news = self._news()
        if news or len(self._runs) > 1:  # a run that has begun may have waited for the end of another
            ready, _ = self._ray.wait([*self._runs], num_returns=len(self._runs), timeout=0)
        return [*map(self._answer, ready), *news]

    def forget(self, ident: str) -> None:
        """End a run whose answer nobody waits for any more."""
        for run in [run for run, name in self._runs.items() if name == ident]:
            del self._runs[run]
            with contextlib.suppress(Exception):  # its node may be gone
                self._ray.cancel(run, force=True)

    @_while_connected
    def claim(self, key: str) -> str:
        """Take the right to build a key; return "" for success, else the builder that has it."""
        try:
            return str(self._ray.get(self._claims.claim.remote(key, self.builder), timeout=_CONNECT_SECONDS))
        except self.lost_cluster:
            raise
        except self._ray.exceptions.RayError:  # without the table, two builders may build one key: waste, no harm
            return ""

    def release(self, key: str) -> None:
        """Give back the right to build a key. Ray hands it over before a later claim."""
        with contextlib.suppress(Exception):  # a lost cluster, for which Ray has no class of its own: `nodes` says so
            self._claims.release.remote(key, self.builder)

    def close(self) -> None:
        """End all runs of this build, and leave the cluster."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self.has_lost_cluster:
            try:
                self._head.look()
            except ConnectionError:
                self.has_lost_cluster = True
        if self.has_lost_cluster:  # Ray would wait for the head, also when Python ends
            atexit.unregister(self._ray.shutdown)
            return
        with contextlib.suppress(Exception):  # the cluster may be gone: then nothing of ours runs there
            for run in self._runs:
                self._ray.cancel(run, force=True)
        self._runs.clear()
        self._ray.shutdown()

    def _waited(self, refs: list[Any], *, count: int, seconds: float) -> list[Any]:
        """Wait until `count` answers have come or the time is over, and return those that have come."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            ready, _ = self._ray.wait(refs, num_returns=count, timeout=max(0.0, min(left, _LOOK_SECONDS)))
            if len(ready) == count or left <= _LOOK_SECONDS:
                return [*ready]
            self._head.look()

    def _on(self, task: Any, nodes: Sequence[ClusterNode], *, cpus: int = 0, memory: int = 0, gpus: float = 0) -> Any:
        """Return a task with the nodes on one of which Ray places it, and what it takes there."""
        places = {"ray.io/node-id": f"in({','.join(node.id for node in nodes)})"}
        return task.options(
            label_selector=places, scheduling_strategy="SPREAD",
            num_cpus=cpus, memory=memory or None, num_gpus=gpus or None, name="recipe",
        )  # fmt: skip

    def _answer(self, ref: Any) -> Piece:
        ident = self._runs.pop(ref)
        errors = self._ray.exceptions
        try:
            node, answer = self._ray.get(ref)
            return Piece(ident, node, answer=answer)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.TaskCancelledError) as error:
            return Piece(ident, lost=first_line(error))
        except errors.RayTaskError as error:
            return Piece(ident, lost=f"the program failed there: {_cause(error)}", node_is_gone=True)
        except errors.RayError as error:
            return Piece(ident, lost=first_line(error), node_is_gone=True)

    def _news(self) -> list[Piece]:
        """Return what nodes have said about runs since the last call, without waiting for more."""
        if self._pieces is None:
            if time.monotonic() - self._last_question < _LOG_SECONDS:
                return []
            self._last_question = time.monotonic()
            self._pieces = self._journal.take.remote()
        ready, _ = self._ray.wait([self._pieces], timeout=0)
        if not ready:
            return []
        refs, self._pieces = self._pieces, None
        try:
            return [Piece(ident, node, log=log) for ident, node, log in self._ray.get(refs)]
        except self._ray.exceptions.RayError:  # logs are a comfort, no more
            return []


_HEAD = {"node:__internal_head__": 0.001}
"""What Ray gives only on the head node, which lives as long as the cluster."""
_SHARE = 0.01
"""The part of a GPU that a survey takes, so that Ray shows the GPU to it."""


def _name(node: Mapping[str, Any]) -> str:
    name, host = str(node.get("NodeName", "")), str(node["NodeManagerHostname"])
    return host if name in ("", node["NodeManagerAddress"]) else name


def _cause(error: BaseException) -> str:
    """Return the error of the program on a node, without Ray's frame around it."""
    cause = getattr(error, "cause", None)
    return f"{type(cause).__name__}: {first_line(cause)}" if isinstance(cause, BaseException) else first_line(error)
