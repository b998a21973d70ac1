"""What a cluster engine, such as Ray, does for a build: it names the nodes, and carries orders and answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.cluster.nodes import ClusterNode, Lane


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


class ClusterEngine(Protocol):
    """An engine that runs orders on nodes. No method blocks for long, except where it says so."""

    @property
    def shown(self) -> str:
        """The address of the cluster, in messages."""

    def nodes(self) -> list[ClusterNode]:
        """Return the nodes that are alive, without their surveys."""

    def ask(self, nodes: Iterable[ClusterNode], question: Mapping[str, Any]) -> dict[str, Mapping[str, Any] | str]:
        """Ask nodes for their surveys and wait for the answers; a text says why a node has not answered."""

    def submit(self, ident: str, nodes: Sequence[ClusterNode], lane: Lane, order: bytes) -> None:
        """Let an order run on one of some nodes, as soon as one has what its lane needs."""

    def poll(self, timeout: float) -> list[Piece]:
        """Wait up to `timeout` seconds for pieces, and return those that have come."""

    def claim(self, key: str) -> str:
        """Take the right to build a key; return "" for success, else the builder that has it."""

    def release(self, key: str) -> None:
        """Give back the right to build a key."""

    def close(self) -> None:
        """End all runs of this build, and leave the cluster."""
