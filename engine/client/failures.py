"""Failures: what a server or the line to it did, as errors that a user can mend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.client.address import Address
from engine.errors import StepError, UserError

_GONE = ("UNAVAILABLE", "CANCELLED")
_LATE = ("DEADLINE_EXCEEDED", "timed out", "Deadline Exceeded", "499")


class Gone(StepError):  # noqa: N818 - what happened, as the user reads it
    """The server does not answer any more (exit 1)."""


class Refused(StepError):  # noqa: N818 - the same
    """The server answered, and its answer is an error (exit 1)."""


@contextmanager
def told(address: Address, doing: str, *, timeout: float | None = None) -> Iterator[None]:
    """Turn whatever the client libraries raise into Gone, or into Refused with the server's own words."""
    from tritonclient.utils import InferenceServerException

    try:
        yield
    except UserError:
        raise
    except InferenceServerException as error:
        status, words = str(error.status() or ""), str(error.message() or error)
        if any(mark in status or mark in words for mark in _LATE):
            raise late(address, timeout) from error
        if any(mark in status for mark in _GONE):
            raise gone(address, words) from error
        raise refused(doing, words) from error
    except TimeoutError as error:
        raise late(address, timeout) from error
    except Exception as error:  # gevent, aiohttp, urllib3 and sockets have a dozen names for it
        if not _of_the_line(error):
            raise
        raise gone(address, f"{type(error).__name__}: {error}".rstrip(": ")) from error


def gone(address: Address, words: str) -> Gone:
    """Return the error for a server that went away."""
    return Gone(
        f"the server at {address.place} went away: it no longer answers",
        [words.splitlines()[0] if words else "it closed the connection"],
        "its log says why; `recipe serve RECIPE` starts it again",
    )


def late(address: Address, timeout: float | None) -> Gone:
    """Return the error for a server that keeps silent."""
    limit = f" within {timeout:g} s" if timeout else " in time"
    return Gone(f"the server at {address.place} did not answer{limit}", hint="give it longer with --timeout SECONDS")


def refused(doing: str, words: str) -> Refused:
    """Return the error for a request that the server did not take."""
    return Refused(f"the server refused {doing}", [line for line in words.splitlines() if line.strip()])


def _of_the_line(error: Exception) -> bool:
    home = type(error).__module__.partition(".")[0]
    return isinstance(error, OSError | EOFError) or home in {"geventhttpclient", "gevent", "http", "urllib3", "grpc"}
