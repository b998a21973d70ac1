"""Failures: turns errors of a server, and of the connection to the server, into errors that a user can act on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from engine.client.address import Address
from engine.errors import StepError, UserError

_GONE = ("UNAVAILABLE", "CANCELLED")
"""Statuses of gRPC that mean that the server went away."""
_LATE = ("DEADLINE_EXCEEDED", "timed out", "Deadline Exceeded", "499")
"""Statuses, and parts of error messages, that mean that the server did not answer in time."""
_CONNECTION_MODULES = {"geventhttpclient", "gevent", "http", "urllib3", "grpc"}
"""The packages whose exceptions, a dozen of them, mean that the connection failed."""


class ServerGoneError(StepError):
    """The server no longer answers; the program ends with exit code 1."""


class RequestRefusedError(StepError):
    """The server answered a request with an error; the program ends with exit code 1."""


@contextmanager
def translated(address: Address, action: str, *, timeout: float | None = None) -> Iterator[None]:
    """Raise the client library's exceptions as ServerGoneError, or as RequestRefusedError with the server's message.

    `action` completes the error text "the server refused ...". The context adds about two microseconds to a request.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        translation = _translation(error, address, action, timeout)
        if translation is None:
            raise
        raise translation from error


def _translation(error: Exception, address: Address, action: str, timeout: float | None) -> StepError | None:
    """Return the error for users; None for an exception that neither the server nor the connection caused."""
    from tritonclient.utils import InferenceServerException

    if isinstance(error, InferenceServerException):
        status, message = str(error.status() or ""), str(error.message() or error)
        if any(mark in status or mark in message for mark in _LATE):
            return _late(address, timeout)
        return _gone(address, message) if any(mark in status for mark in _GONE) else refused(action, message)
    if isinstance(error, TimeoutError):
        return _late(address, timeout)
    package = type(error).__module__.partition(".")[0]
    if isinstance(error, OSError | EOFError) or package in _CONNECTION_MODULES:
        return _gone(address, f"{type(error).__name__}: {error}".rstrip(": "))
    return None


def refused(action: str, message: str) -> RequestRefusedError:
    """Return the error for a request that the server answered with an error message."""
    return RequestRefusedError(f"the server refused {action}", [line for line in message.splitlines() if line.strip()])


def error_message(body: bytes) -> str | None:
    """Return the error message in the body of an HTTP response; None where the body is no error of the protocol."""
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return None


def _gone(address: Address, message: str) -> ServerGoneError:
    return ServerGoneError(
        f"the server at {address.place} went away: it no longer answers",
        [message.splitlines()[0] if message else "it closed the connection"],
        "the server's log says why; `recipe serve RECIPE` starts it again",
    )


def _late(address: Address, timeout: float | None) -> ServerGoneError:
    limit = f" within {timeout:g} s" if timeout else " in time"
    return ServerGoneError(
        f"the server at {address.place} did not answer{limit}", hint="allow more time with --timeout SECONDS"
    )
