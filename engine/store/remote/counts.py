"""What happened at a remote: what came, what went, what was refused, and what failed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.errors import StoreError, UserError
from engine.store.remote.errors import RefusedError
from engine.text import sizes


@dataclass
class Counts:
    """What happened at the remote. Several threads count."""

    taken: int = 0
    pushed: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Refused objects by the kind of the reason."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The first message of each kind."""
    error: UserError | None = None
    """The first error that was not a refusal of an object: nothing more is pushed."""
    unread: UserError | None = None
    """The first error of a look-up."""
    on_bytes: Callable[[int], None] = lambda _: None
    """Called with the number of bytes of each object that came or went."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, count: int) -> None:
        """Count the bytes of an object that went to the remote."""
        with self._lock:
            self.bytes_out += count
        self.on_bytes(count)

    def receive(self, count: int) -> None:
        """Count the bytes of an object that came from the remote."""
        with self._lock:
            self.bytes_in += count
        self.on_bytes(count)

    def refuse(self, error: RefusedError) -> None:
        """Count an object that is not what its record or its signature promises."""
        with self._lock:
            self.refused[error.kind] += 1
            self.reasons.setdefault(error.kind, error.what)

    def note(self, error: UserError | OSError) -> None:
        """Keep the first error."""
        if self.error is None:
            self.error = error if isinstance(error, UserError) else StoreError(str(error))

    def trouble(self, remote: str, gone: UserError | None) -> str:
        """Return one line about what went wrong at a remote; "" if nothing did. `gone` is why it is left alone."""
        error = gone or self.error or self.unread
        if error is not None:
            state = "is left alone" if gone or self.error else "cannot be read, and jobs run here"
            what = error.what.removeprefix(f"{remote}/")
            return f"the remote {remote} {state}: {'; '.join(filter(None, [what, *error.facts, error.hint]))}"
        if self.refused:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.refused.most_common())
            first = next(iter(self.reasons.values()))
            return f"the remote {remote}: {self.refused.total()} refused ({kinds}): {first}"
        return ""

    def transfers(self, remote: str) -> str:
        """Return one line about what came and went; "" if nothing did."""
        parts = []
        if self.taken:
            parts.append(f"{self.taken} records came from there, {sizes.decimal(self.bytes_in)} of files")
        if self.pushed:
            parts.append(f"{self.pushed} records went there, {sizes.decimal(self.bytes_out)} of files")
        return f"the remote {remote}: {'; '.join(parts)}" if parts else ""
