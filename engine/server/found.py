"""Found: a Triton server that can be started, and how."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine.server.needs import Needs
from engine.server.ports import Ports

Kind = Literal["path", "container", "pip"]
_CACHE_BYTES = 256 << 20
_EXIT_SECONDS = 10


class Lacking(Exception):  # noqa: N818 - a reason to look further, not an error yet
    """Why a kind of server is not to be had here, and what would help."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint


@dataclass(frozen=True)
class Place:
    """Where a server is to run: its repository, its ports, a folder of its own and a name that no other has."""

    repository: Path
    ports: Ports
    folder: Path
    name: str
    needs: Needs


@dataclass(frozen=True)
class Launch:
    """What starts a server, and what is run when it has ended, whatever ended it."""

    command: Sequence[str]
    environment: Mapping[str, str]
    afterwards: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Found(ABC):
    """A server that was found: its version (Triton's, or its image's tag; empty where only it can tell), and why it."""

    kind: Kind
    version: str
    why: str
    passed: tuple[str, ...] = field(default=(), kw_only=True)
    """Why those that come before it in the order were not taken."""

    stand_in = False
    """Whether ONNX models are answered by the stand-in for Triton's own backend."""

    @abstractmethod
    def launch(self, place: Place) -> Launch:
        """Lay out what the server needs in its folder, and say how it is started. Raises StepError."""


def options(place: Place, repository: str, ports: Ports) -> list[str]:
    """Return the options of `tritonserver` that are the same for every kind."""
    cache = [f"--cache-config=local,size={_CACHE_BYTES}"] if place.needs.cached else []
    return [
        f"--model-repository={repository}",
        *(f"--{name}-address={ports.address}" for name in ("http", "grpc", "metrics")),
        f"--http-port={ports.http}",
        f"--grpc-port={ports.grpc}",
        f"--metrics-port={ports.metrics}",
        f"--id={place.name}",  # by which it is told from another server on its port
        # It stays up when a model fails, so that it can be asked which one, and why.
        "--exit-on-error=false",
        f"--exit-timeout-secs={_EXIT_SECONDS}",
        f"--backend-config=python,shm-region-prefix-name={place.name}_",
        *cache,
    ]
