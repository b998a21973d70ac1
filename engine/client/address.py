"""Address: where a server listens and how it is spoken to, and what really listens there."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import Literal

from engine.errors import StepError, UsageError

Protocol = Literal["http", "grpc"]

_FORMS = "http://HOST:PORT, grpc://HOST:PORT, https://..., grpcs://..., or HOST:PORT"
_SCHEMES: dict[str, tuple[Protocol, bool]] = {
    "http": ("http", False),
    "https": ("http", True),
    "grpc": ("grpc", False),
    "grpcs": ("grpc", True),
}
_PORTS = {"http": 8000, "https": 443, "grpc": 8001, "grpcs": 443, "": 8000}
"""Triton's own ports; those of TLS where it stands behind a proxy."""
_SETTINGS = b"\x04"
"""The type of the first frame that an HTTP/2 server sends (RFC 9113, 3.4), in the fourth byte (4.1)."""
_PATIENCE = 5.0
_LARGEST_PORT = 65535


@dataclass(frozen=True)
class Address:
    """Host and port, the protocol where the URL says it, and whether the line is encrypted."""

    host: str
    port: int
    protocol: Protocol | None
    tls: bool = False

    @property
    def place(self) -> str:
        """The host and the port, as sockets are written."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, protocol: Protocol | None = None) -> str:
        """Return the address as users write it, of its own or another protocol."""
        spoken = protocol or self.protocol
        return f"{spoken}{'s' if self.tls else ''}://{self.place}" if spoken else self.place


def parse(url: str) -> Address:
    """Return what a URL says. Raises UsageError for what is none."""
    found = re.fullmatch(r"(?:([a-zA-Z0-9+.-]+)://)?(\[[0-9a-fA-F:.]+\]|[^/:@\s]+)(?::([0-9]+))?/?", url)
    scheme = (found[1] or "").lower() if found else ""
    if found is None or (scheme and scheme not in _SCHEMES):
        raise UsageError(f"{url!r} is no address of a server", hint=f"write {_FORMS}")
    port = int(found[3] or _PORTS[scheme])
    if not 0 < port <= _LARGEST_PORT:
        raise UsageError(f"{url!r} has no port that can be: {port}", hint=f"write {_FORMS}")
    protocol, tls = _SCHEMES[scheme] if scheme else (None, False)
    return Address(found[2].strip("[]"), port, protocol, tls)


def resolved(url: str) -> Address:
    """Return the address with its protocol, after a look at what listens there.

    Raises UsageError for what is no URL, StepError where nothing or something else listens.
    """
    address = parse(url)
    if address.tls:
        with _connected(address):
            return address
    listens = _listening(address)
    if listens is None:
        raise StepError(
            f"what listens at {address.place} is no server of models",
            ["it answers neither the KServe v2 protocol over HTTP nor gRPC"],
            "Triton's metrics have a port of their own: ask the HTTP or the gRPC port",
        )
    if address.protocol not in (None, listens):
        asked, there = (_NAMES[name] for name in (address.protocol or "http", listens))
        raise StepError(f"{address.place} speaks {there}, and the URL says {asked}", hint=f"use {address.url(listens)}")
    return Address(address.host, address.port, listens)


_NAMES: dict[Protocol, str] = {"http": "HTTP", "grpc": "gRPC"}


def _connected(address: Address) -> socket.socket:
    try:
        return socket.create_connection((address.host, address.port), _PATIENCE)
    except socket.gaierror as error:
        raise StepError(f"there is no host {address.host!r}", [str(error.strerror)], "look at the URL") from error
    except OSError as error:
        raise StepError(
            f"nothing answers at {address.place}",
            [error.strerror or str(error)],
            "`recipe serve RECIPE` starts a server and shows its addresses",
        ) from error


def _listening(address: Address) -> Protocol | None:
    """Ask in HTTP/1.1: a gRPC server does not wait for the question, and sends its settings first."""
    question = f"GET /v2 HTTP/1.1\r\nHost: {address.place}\r\nConnection: close\r\n\r\n".encode()
    heard = b""
    with _connected(address) as line:
        try:
            line.sendall(question)
            while part := line.recv(4096):
                heard += part
                if heard[3:4] == _SETTINGS and not heard.startswith(b"HTTP/"):
                    return "grpc"
        except OSError as error:  # it may hang up on us, or say nothing
            if not heard:
                raise StepError(f"{address.place} takes connections and does not answer", [str(error)]) from error
    head, _, body = heard.partition(b"\r\n\r\n")
    return "http" if head.startswith(b"HTTP/") and b"{" in body and b'"name"' in body else None
