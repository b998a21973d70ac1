"""Where a server listens: ports that are given must be free, others are chosen."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from itertools import count, islice

from engine.errors import UsageError

USUAL = (8000, 8001, 8002)
"""Triton's own defaults."""
_TRIES = 20


@dataclass(frozen=True)
class Ports:
    """Three ports of one address."""

    http: int
    grpc: int
    metrics: int
    address: str = "127.0.0.1"


def free(address: str = "127.0.0.1") -> Ports:
    """Return three ports that are free now. Raises UsageError for an address that is not this machine's."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_bound(address, 0)) for _ in USUAL]
        numbers = [each.getsockname()[1] for each in sockets]
    return Ports(numbers[0], numbers[1], numbers[2], address)


def choose(address: str, http: int | None, grpc: int | None, metrics: int | None) -> Ports:
    """Return the ports that are given, and for the others Triton's usual ones, or those that follow where any is taken.

    Raises UsageError where one that is given is taken or given twice, or the address is not this machine's.
    """
    given = (http, grpc, metrics)
    said = [port for port in given if port is not None]
    if len(set(said)) < len(said):
        raise UsageError(
            "two of the ports are the same", [f"--http-port {http}, --grpc-port {grpc}, --metrics-port {metrics}"]
        )
    with _bound(address, 0):
        pass
    for port, name in zip(given, ("http", "grpc", "metrics"), strict=True):
        if port is not None and not _is_free(address, port):
            raise UsageError(
                f"port {port} of {address} is taken, or not ours to take",
                hint=f"name another one, or leave --{name}-port out: one that is free is chosen",
            )
    for start in islice(count(USUAL[0], 10), _TRIES):
        wanted = [port or start + offset for offset, port in enumerate(given)]
        chosen = [port for port, asked in zip(wanted, given, strict=True) if asked is None]
        if not set(chosen) & set(said) and all(_is_free(address, port) for port in chosen):
            return Ports(wanted[0], wanted[1], wanted[2], address)
    others = free(address)
    return Ports(http or others.http, grpc or others.grpc, metrics or others.metrics, address)


def _is_free(address: str, port: int) -> bool:
    try:
        _bound(address, port).close()
    except UsageError:
        return False
    return True


def _bound(address: str, port: int) -> socket.socket:
    """Return a socket that has the port. Raises UsageError."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address, port))
    except (OSError, OverflowError) as error:
        made.close()
        raise UsageError(
            f"nothing can listen on {address}", [str(error)], "name an address of this machine, as in --address 0.0.0.0"
        ) from error
    return made
