"""Records and artifacts that go from a store to a remote."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import UserError
from engine.store.record import Record
from engine.store.remote.admission import admitted
from engine.store.remote.anew import Anew
from engine.store.remote.attempts import Attempts
from engine.store.remote.background import Background
from engine.store.remote.counts import Counts
from engine.store.remote.guard import GuardedPlace
from engine.store.remote.moving import Moving
from engine.store.remote.pushes import Pushes
from engine.store.remote.settings import RemoteSettings
from engine.store.remote.uploads import Upload
from engine.store.store import Store


class RemoteWriter:
    """Pushes what a store has made to a remote, in the background. The first error ends the pushing."""

    def __init__(
        self, store: Store, place: GuardedPlace, attempts: Attempts, background: Background, counts: Counts, *,
        settings: RemoteSettings, anew: Anew, moving: Moving,
    ) -> None:  # fmt: skip
        """The records and blobs in `anew` are written although the remote has them."""
        self._store = store
        self._place = place
        self._counts = counts
        self._settings = settings
        upload = Upload(
            store, place, attempts, signer=settings.signer, retention=settings.retention, on_bytes=counts.send,
            moving=moving,
        )  # fmt: skip
        upload.anew = anew.objects
        self._pushes = Pushes(
            store, upload, background, counts, wrong=anew.keys,
            check=lambda raw, key: admitted(raw, key, settings.trust),
        )  # fmt: skip

    def push(self, record: Record, *, earlier: Sequence[Record] = ()) -> None:
        """Begin to push a record, unless the remote has it. `wait` waits for the end.

        A record whose artifact is still at a remote is left out.
        `earlier` are the records of the jobs before the record's job.
        """
        if self._counts.error is None and not self._store.is_away(record):
            self._pushes.begin(record, earlier)

    def push_new(self, record: Record, *, earlier: Sequence[Record]) -> None:
        """Begin to push a record of a build, unless builds do not push, or this store knows that the remote has it."""
        if self._settings.pushes and not record.origin and not self._store.is_pushed(record.digest, self._place.shown):
            self.push(record, earlier=earlier)

    def wait(self) -> UserError | None:
        """Wait until everything is pushed, and return the first error, if any."""
        self._pushes.wait()
        return self._counts.error
