"""Address: the host, port and protocol of a server, and the test of which protocol the server speaks."""

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
"""The default port for each scheme of a URL: Triton's own ports, and for TLS the port of a proxy in front of Triton."""
_SETTINGS = b"\x04"
"""The frame type SETTINGS, which is the fourth byte that an HTTP/2 server sends (RFC 9113, 3.4 and 4.1)."""
_TIMEOUT = 5.0
"""Seconds to wait for a connection and for a response."""
_LARGEST_PORT = 65535
_NAMES: dict[Protocol, str] = {"http": "HTTP", "grpc": "gRPC"}


@dataclass(frozen=True)
class Address:
    """Host, port and protocol of a server, and whether TLS encrypts the connection."""

    host: str
    port: int
    protocol: Protocol | None
    """The protocol that the URL names; None where the URL names no protocol."""
    tls: bool = False

    @property
    def place(self) -> str:
        """HOST:PORT; an IPv6 address stands in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, protocol: Protocol | None = None) -> str:
        """Return the address as a URL that names `protocol`, or by default the protocol of the address."""
        scheme = protocol or self.protocol
        return f"{scheme}{'s' if self.tls else ''}://{self.place}" if scheme else self.place


def parse(url: str) -> Address:
    """Return the address that a URL names. Raises UsageError for a malformed URL."""
    match = re.fullmatch(r"(?:([a-zA-Z0-9+.-]+)://)?(\[[0-9a-fA-F:.]+\]|[^/:@\s]+)(?::([0-9]+))?/?", url)
    scheme = (match[1] or "").lower() if match else ""
    if match is None or (scheme and scheme not in _SCHEMES):
        raise UsageError(f"{url!r} is no address of a server", hint=f"write {_FORMS}")
    port = int(match[3] or _PORTS[scheme])
    if not 0 < port <= _LARGEST_PORT:
        raise UsageError(f"{url!r} names the port {port}, and ports are 1 to {_LARGEST_PORT}", hint=f"write {_FORMS}")
    protocol, tls = _SCHEMES[scheme] if scheme else (None, False)
    return Address(match[2].strip("[]"), port, protocol, tls)


def resolved(url: str) -> Address:
    """Return the address of a URL, with the protocol that the server at the address really speaks.

    Raises UsageError for a malformed URL, and StepError where no server listens or the server speaks another protocol
    than the URL names.
    """
    address = parse(url)
    if address.tls:
        with _connected(address):
            return address
    listens = _listening(address)
    if listens is None:
        raise StepError(
            f"the program that listens at {address.place} serves no models",
            ["it answers neither the KServe v2 protocol over HTTP nor gRPC"],
            "Triton's metrics have a port of their own: use the HTTP or the gRPC port",
        )
    if address.protocol not in (None, listens):
        actual, named = _NAMES[listens], _NAMES[address.protocol or "http"]
        raise StepError(
            f"{address.place} speaks {actual}, and the URL says {named}", hint=f"use {address.url(listens)}"
        )
    return Address(address.host, address.port, listens)


def _connected(address: Address) -> socket.socket:
    try:
        return socket.create_connection((address.host, address.port), _TIMEOUT)
    except socket.gaierror as error:
        raise StepError(f"there is no host {address.host!r}", [str(error.strerror)], "check the URL") from error
    except OSError as error:
        raise StepError(
            f"nothing answers at {address.place}",
            [error.strerror or str(error)],
            "`recipe serve RECIPE` starts a server and shows its addresses",
        ) from error


def _listening(address: Address) -> Protocol | None:
    """Return the protocol of the server at `address`, found by an HTTP/1.1 request; None for neither HTTP nor gRPC."""
    request = f"GET /v2 HTTP/1.1\r\nHost: {address.place}\r\nConnection: close\r\n\r\n".encode()
    response = b""
    with _connected(address) as line:
        try:
            line.sendall(request)
            while part := line.recv(4096):
                response += part
                if response[3:4] == _SETTINGS and not response.startswith(b"HTTP/"):
                    return "grpc"
        except OSError as error:  # the server may close the connection, or send nothing
            if not response:
                raise StepError(f"{address.place} takes connections and does not answer", [str(error)]) from error
    head, _, body = response.partition(b"\r\n\r\n")
    return "http" if head.startswith(b"HTTP/") and b"{" in body and b'"name"' in body else None
