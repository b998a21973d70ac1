"""Installation: a Triton server on this machine, and the command that starts it."""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine.errors import UsageError
from engine.server.ports import Ports
from engine.server.repository_needs import Needs

Kind = Literal["path", "container", "pip"]
KIND_NAMES: Mapping[str, str] = {"path": "on the PATH", "container": "in a container", "pip": "installed by pip"}
"""The words for each kind of server in tables, messages and errors."""
_CACHE_BYTES = 256 << 20
"""The size of the server's cache of responses: 256 MiB for all models together."""
_EXIT_SECONDS = 10
"""How many seconds Triton waits for requests in progress when it is asked to end."""
_CLOSED = "shared-memory,trace,logging"
"""Endpoints by which a client changes the server: a region of the python backend, overwritten, ends Triton 2.51.

`model-repository` is not among them: its index is how clients learn the models, and Triton loads none at run time
unless `--model-control-mode` says so.
"""
_CLOSING = ("--http-restricted-api", "--grpc-restricted-protocol")
_CLOSING_SINCE, _CLOSING_SINCE_IMAGE = (2, 40), (23, 11)
"""The first Triton with both options, and the release of its image (triton-inference-server/server, PR 6435)."""
_OURS = {
    "--model-repository": "name recipes: recipe serves their packages",
    "--model-store": "name recipes: recipe serves their packages",
    "--http-address": "use --address ADDRESS of recipe",
    "--grpc-address": "use --address ADDRESS of recipe",
    "--metrics-address": "use --address ADDRESS of recipe",
    "--http-port": "use --http-port PORT of recipe, before `--`",
    "--grpc-port": "use --grpc-port PORT of recipe, before `--`",
    "--metrics-port": "use --metrics-port PORT of recipe, before `--`",
    "--allow-http": "recipe watches the server over HTTP",
    "--backend-directory": "leave it out: recipe finds the backends",
    "--id": "leave it out: recipe tells its servers apart by it",
    "--log-file": "use --log FILE of recipe, before `--`",
    "--exit-on-error": "leave it out: recipe reports which model does not load",
}
"""Options that recipe itself needs, with what to do instead."""


class Lacking(Exception):  # noqa: N818 - a reason to look further, not an error yet
    """Raised with the reason why a kind of server cannot be used on this machine; `hint` says what would help."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint


@dataclass(frozen=True)
class ServerSetup:
    """Where a server runs: its model repository, its ports, a folder of its own and a name that no other server has."""

    repository: Path
    ports: Ports
    folder: Path
    name: str
    needs: Needs
    further: tuple[str, ...] = ()
    """Options of `tritonserver` that the user gave."""


@dataclass(frozen=True)
class Launch:
    """The command that starts a server, its environment variables, and the commands that clean up after its end."""

    command: Sequence[str]
    environment: Mapping[str, str]
    afterwards: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Installation(ABC):
    """A Triton server that can be started on this machine.

    `version` is Triton's version or, for a container, the tag of the image; it is empty where only the running server
    knows its version. `why` says in words where the server was found.
    """

    kind: Kind
    version: str
    why: str
    passed: tuple[str, ...] = field(default=(), kw_only=True)
    """The kinds of servers that were tried before, each with the reason why that kind cannot be used."""

    stand_in = False
    """Whether stand-ins for Triton's onnxruntime and openvino backends answer for their models."""

    @abstractmethod
    def launch(self, setup: ServerSetup) -> Launch:
        """Write the server's files into its folder; return the command that starts it. Raises Lacking or OSError."""


def options(setup: ServerSetup, repository: str, ports: Ports, version: str = "") -> list[str]:
    """Return the options of `tritonserver` that every kind of server takes; `version` is Triton's or its image's."""
    by_user = {word.partition("=")[0] for word in setup.further}
    return [
        f"--model-repository={repository}",
        *(f"--{name}-address={_of_libevent(ports)}" for name in ("http", "metrics")),
        f"--grpc-address={ports.written}",
        f"--http-port={ports.http}",
        f"--grpc-port={ports.grpc}",
        f"--metrics-port={ports.metrics}",
        f"--id={setup.name}",  # Triton returns this name at `/v2`, so another server on the port is noticed
        # A server with a model that fails to load stays up, and tells which model failed and why.
        "--exit-on-error=false",
        f"--exit-timeout-secs={_EXIT_SECONDS}",
        f"--backend-config=python,shm-region-prefix-name={setup.name}_",
        *of_needs(setup.needs, repository),
        *(word for word in closing(secrets.token_hex(), version) if word.partition("=")[0] not in by_user),
        *setup.further,
    ]


def of_needs(needs: Needs, repository: str) -> list[str]:
    """Return the options of `tritonserver` that the models of a repository need, whoever starts the server."""
    # Source: triton-inference-server/tensorrt_backend, README, "Command-line Options", and src/tensorrt.cc. Without
    # `version-compatible`, TensorRT refuses the code inside a version-compatible engine. `;` separates plugins.
    plugins = [f"{repository}/{path}" for engine in needs.engines for path in engine.plugins]
    compatible = any(engine.version_compatible for engine in needs.engines)
    return [
        *(["--backend-config=tensorrt,version-compatible=true"] if compatible else []),
        *([f"--backend-config=tensorrt,plugins={';'.join(plugins)}"] if plugins else []),
        *([f"--cache-config=local,size={_CACHE_BYTES}"] if needs.cached else []),
    ]


def closing(secret: str, version: str = "") -> list[str]:
    """Return the options that close shared memory, traces and logging to all clients that do not send `secret`.

    `version` is Triton's (`2.51.0`) or its image's (`24.10-py3`). A Triton that lacks the options gets none; one of an
    unknown version gets them.
    """
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    first = _CLOSING_SINCE_IMAGE if numbers >= _CLOSING_SINCE_IMAGE[:1] else _CLOSING_SINCE
    if numbers and numbers < first:
        return []
    return [f"{option}={_CLOSED}:recipe={secret}" for option in _CLOSING]


def _of_libevent(ports: Ports) -> str:
    """Return the address as libevhtp's `evhtp_bind_socket` (evhtp.c) takes it: IPv6 with the prefix `ipv6:`."""
    return f"ipv6:{ports.address}" if ":" in ports.address else ports.address


def user_options(words: Sequence[str]) -> tuple[str, ...]:
    """Return the options of a command line behind `--`. Raises UsageError for an option that recipe itself sets."""
    for word in words:
        name = word.partition("=")[0]
        if name in _OURS:
            raise UsageError(f"recipe sets {name} of tritonserver itself", [f"behind `--`: {word}"], _OURS[name])
    if words and not words[0].startswith("--"):
        raise UsageError(
            f"behind `--` stand options of tritonserver, and {words[0]!r} is none",
            hint="recipe serve RECIPE -- --log-verbose=1",
        )
    return tuple(words)
