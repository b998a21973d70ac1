"""Claims: of all builders in a cluster, one runs the job of a key."""

from __future__ import annotations

import time
from collections.abc import Iterable

SILENCE = 15.0
"""After so many seconds without a word from a builder, its claims are free: it has died, or lost the cluster."""


class ClaimTable:
    """Who builds which key. The table lives in one process of the cluster; if it is lost, two may build one key."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._heard: dict[str, float] = {}

    def hear(self, builder: str, released: Iterable[str] = ()) -> None:
        """Note that a builder lives, and take back keys that it has and no longer needs."""
        self._heard[builder] = time.monotonic()
        for key in released:
            if self._holders.get(key) == builder:
                del self._holders[key]

    def claim(self, key: str, builder: str, released: Iterable[str] = ()) -> str:
        """Give a key to a builder and return ""; or return the builder that has the key. Hears the builder first."""
        self.hear(builder, released)
        holder = self._holders.get(key, builder)
        if holder != builder and time.monotonic() - self._heard.get(holder, -SILENCE) < SILENCE:
            return holder
        self._holders[key] = builder
        return ""

    def leave(self, builder: str) -> None:
        """Take back all keys of a builder."""
        self._heard.pop(builder, None)
        self._holders = {key: holder for key, holder in self._holders.items() if holder != builder}
