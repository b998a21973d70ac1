"""Objects by name: what all places of remotes have in common."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Entry:
    """An object of a place: its name, its size in bytes, and the time of its last write in seconds since the epoch."""

    name: str
    size: int
    modified: float


class RemotePlace(Protocol):
    """Objects by name. A write is atomic: no reader sees a part of an object."""

    shown: str
    """The URL without user, password and query, for messages."""

    async def read(self, name: str, *, most: int) -> bytes:
        """Return an object. Raises MissingError, RefusedError for more than `most` bytes, and RemoteError."""

    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool:
        """Write an object. With `create`, an object that exists stays; returns whether the object was written.

        A web server may not know `create`; there, two writers at the same moment may both write. Raises RemoteError.
        """

    async def entry(self, name: str) -> Entry | None:
        """Return what is known of an object, or None for a missing object. Raises RemoteError."""

    def list(self, prefix: str) -> AsyncIterator[Entry]:
        """Yield the objects whose names begin with the folder `prefix`. Raises RemoteError where nothing can list."""

    async def remove(self, name: str) -> None:
        """Remove an object; a missing object is no error. Raises RemoteError."""

    async def close(self) -> None:
        """Close all connections."""


def shown(url: str) -> str:
    """Return a URL for messages: without user, password, query and fragment."""
    scheme, colon, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if "@" in authority or ":" in authority:  # a password may have any character
        rest = rest.rpartition("@")[2]
    return f"{scheme}{colon}{re.split('[?#]', rest, maxsplit=1)[0]}"
