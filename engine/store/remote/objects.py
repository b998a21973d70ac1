"""An object of a remote, and a URL without its secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """An object of a place: its name, its size in bytes, and the time of its last write in seconds since the epoch."""

    name: str
    size: int
    modified: float


def shown(url: str) -> str:
    """Return a URL for messages: without user, password, query and fragment."""
    scheme, colon, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if "@" in authority or ":" in authority:  # a password may have any character
        rest = rest.rpartition("@")[2]
    url = f"{scheme}{colon}{re.split('[?#]', rest, maxsplit=1)[0]}"
    return "".join(each if each.isprintable() else "?" for each in url)
