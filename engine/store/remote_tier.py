"""What a store expects of the remote behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.errors import UserError
    from engine.events import Moved
    from engine.key import Key
    from engine.store.record import Record
    from engine.store.remote.settings import RemoteSettings


class RemoteTier(Protocol):
    """A remote behind a store (`engine.store.remote.tier`). Only `bring` raises errors."""

    settings: RemoteSettings

    def watch(self, on_event: Callable[[Moved], None]) -> None:
        """Report from now on what moves, in the thread that waits for the remote, or that calls `pulse`."""

    def pulse(self) -> bool:
        """Report what has moved since the last event; return whether something is on its way."""

    def find(self, key: Key) -> Record | None:
        """Return the remote's record of a key, now also in the store, without its artifact; None without one."""

    def receive(self, key: Key, raw: bytes) -> Record | None:
        """Return the record of a key from its envelope `raw`, now also in the store; None for one that is not trusted.

        The maker of the record has sent the envelope itself, after it pushed the record.
        """

    def look_again(self) -> None:
        """Forget what was missing and what failed, before a build looks again for a result that it waits for."""

    def counts_for(self, record: Record) -> bool:
        """Say whether a record that came from a remote may still be used."""

    def bring(self, record: Record) -> None:
        """Bring the artifact of a record that came from a remote. Raises StoreError, OSError."""

    def gather(self, key: Key) -> None:
        """Add the records that other machines made for a job like that of `key` to the store."""

    def push_new(self, record: Record, *, earlier: Sequence[Record]) -> None:
        """Begin to push a record of a build; `earlier` are the records of the jobs before the record's job."""

    def wait(self) -> UserError | None:
        """Wait until everything is pushed, and return the first error, if any."""

    def summary(self) -> str:
        """Return one line about the remote; "" if nothing happened."""
