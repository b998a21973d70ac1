"""The ports of a server: ports that the user names, and free ports for those that the user does not name."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from itertools import count, islice

from engine.errors import UsageError

USUAL = (8000, 8001, 8002)
"""Triton's default ports for HTTP, gRPC and metrics."""
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - where to ask, not to listen
"""The address for any network -> the host that a client on this machine asks."""
_TRIES = 20
"""How many groups of three ports are tried: 8000 to 8002, then 8010 to 8012, and so on."""
_STRIDE = 10


@dataclass(frozen=True)
class Ports:
    """The ports of a server for HTTP, gRPC and metrics, at one address."""

    http: int
    grpc: int
    metrics: int
    address: str = "127.0.0.1"
    """An IPv4 or IPv6 address in digits. Triton listens on 255.255.255.255 where it is given a name."""

    @property
    def written(self) -> str:
        """The address as it is written before a port: `127.0.0.1`, `[::1]`."""
        return f"[{self.address}]" if ":" in self.address else self.address

    @property
    def host(self) -> str:
        """Where a client on this machine finds the server, as in a URL."""
        return _LOOPBACK.get(self.address, self.written)


def free(address: str = "127.0.0.1") -> Ports:
    """Return three ports that are free now, for HTTP, gRPC and metrics. Raises UsageError for a foreign address."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_bound(address, 0)) for _ in USUAL]
        numbers = [each.getsockname()[1] for each in sockets]
    return Ports(numbers[0], numbers[1], numbers[2], address)


def choose(address: str, http: int | None, grpc: int | None, metrics: int | None) -> Ports:
    """Return the ports that the user names, and a free port for each argument that is None.

    `address` is an IPv4 or IPv6 address, or a host's name. The free ports are Triton's default ports or ports after
    them. Raises UsageError where a named port is taken or named twice, or where the address does not belong to this
    machine.
    """
    address = _in_digits(address)
    ports = (http, grpc, metrics)
    named = [port for port in ports if port is not None]
    if len(set(named)) < len(named):
        raise UsageError(
            "two of the ports are the same", [f"--http-port {http}, --grpc-port {grpc}, --metrics-port {metrics}"]
        )
    with _bound(address, 0):
        pass
    for port, name in zip(ports, ("http", "grpc", "metrics"), strict=True):
        if port is not None and not _is_free(address, port):
            raise UsageError(
                f"port {port} of {address} is taken, or this user may not use it",
                hint=f"name another port, or leave --{name}-port out: then a free port is chosen",
            )
    for start in islice(count(USUAL[0], _STRIDE), _TRIES):
        candidates = [port or start + offset for offset, port in enumerate(ports)]
        chosen = [candidate for candidate, port in zip(candidates, ports, strict=True) if port is None]
        if set(chosen).isdisjoint(named) and all(_is_free(address, port) for port in chosen):
            return Ports(candidates[0], candidates[1], candidates[2], address)
    others = free(address)
    return Ports(http or others.http, grpc or others.grpc, metrics or others.metrics, address)


def _in_digits(address: str) -> str:
    """Return the address of a host's name in digits, IPv4 where it has both. Raises UsageError for an unknown name."""
    bare = address[1:-1] if address.startswith("[") and address.endswith("]") else address
    try:
        known = socket.getaddrinfo(bare or None, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"--address {address} is no address, and no host that this machine knows",
            [str(error)],
            "name an address of this machine: 127.0.0.1, ::1, or 0.0.0.0 for every network",
        ) from None
    first = min(known, key=lambda each: each[0] != socket.AF_INET)
    return str(first[4][0])


def _is_free(address: str, port: int) -> bool:
    try:
        _bound(address, port).close()
    except UsageError:
        return False
    return True


def _bound(address: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise UsageError(
            f"nothing can listen on {address}", [str(error)], "name an address of this machine, as in --address 0.0.0.0"
        ) from error
    return bound
