"""The remote tier of a store: records that this machine lacks come from the remote, and new records go there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from engine.errors import UserError
from engine.events import Moved
from engine.key import Key
from engine.store.record import Record
from engine.store.remote import attempts, places
from engine.store.remote.attempts import PatientPlace
from engine.store.remote.background import Background
from engine.store.remote.guard import GuardedPlace
from engine.store.remote.pushes import Pushes
from engine.store.remote.reader import RemoteReader
from engine.store.remote.settings import RemoteSettings
from engine.store.remote.transfers import Anew, Counts, Moving, Watch
from engine.store.store import Store


class Tier:
    """A remote behind a store. A build that uses it never fails because of it.

    Looking up raises nothing: a remote that is down, slow or wrong counts as one without the record.
    """

    def __init__(
        self, store: Store, settings: RemoteSettings, *, brief: bool, place: GuardedPlace | None = None
    ) -> None:
        """With `brief`, the remote is left alone after a few lost seconds, as a build needs it. Raises UsageError.

        `place` replaces the place of the settings' URL, for example by an archive.
        """
        self.settings = settings
        self._store = store
        self.counts = Counts()
        self.attempts = attempts.brief() if brief else attempts.patient()
        reading = place or places.place_of(settings.url, environ=settings.environ, writes=False)
        writing = place or places.place_of(settings.url, environ=settings.environ, writes=True)
        self._places = {id(each): each for each in (reading, writing)}
        self._background = Background()
        self._coming, self._going = Moving("in"), Moving("out")
        anew = Anew()
        self._reader = RemoteReader(
            store, PatientPlace(reading, self.attempts), self._background, self.counts,
            settings=settings, anew=anew, moving=self._coming,
        )  # fmt: skip
        self._pushes = Pushes(
            store, PatientPlace(writing, self.attempts), self._background, self.counts,
            settings=settings, anew=anew, moving=self._going,
        )  # fmt: skip
        self.shown = reading.shown
        """The remote in messages."""

    def watch(self, on_event: Callable[[Moved], None]) -> None:
        """Report from now on what moves, in the thread that waits for the remote, or that calls `pulse`."""
        self._background.on_pulse = Watch(self.shown, (self._coming, self._going), on_event)

    def pulse(self) -> bool:
        """Report what has moved since the last event; return whether something is on its way."""
        self._background.on_pulse()
        return bool(self._coming.jobs or self._going.jobs)

    # -- reading ---------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Record | None:
        """Return the record of a key, now also in the store, or None. The artifact stays where it is: see `bring`."""
        return self._reader.find(key)

    def receive(self, key: Key, raw: bytes) -> Record | None:
        """Return the record of a key from an envelope that its maker has sent; None for one that is not trusted."""
        return self._reader.receive(key, raw)

    def look_again(self) -> None:
        """Forget what was missing and what failed: a build that waits for results gives the remote another chance."""
        self._reader.look_again()

    def counts_for(self, record: Record) -> bool:
        """Say whether a record that came from a remote may still be used: its key is on the list, and not revoked."""
        return self.settings.trust.counts(record.origin.get("signer", ""))

    def bring(self, record: Record) -> None:
        """Bring the artifact of a record that came from a remote. Raises RemoteError, OSError."""
        self._reader.bring(record)

    def gather(self, key: Key) -> None:
        """Add the records that other machines made for a job like that of `key` to the store."""
        self._reader.gather(key)

    def take_all(self) -> list[Record]:
        """Add every record of the remote to the store, and return those that the store has now. Raises RemoteError."""
        return self._reader.take_all()

    def bring_all(self, records: Iterable[Record]) -> None:
        """Bring the artifacts of many records at a time. Raises RemoteError, OSError."""
        self._reader.bring_all(records)

    # -- writing ---------------------------------------------------------------------------------------------

    def push(self, record: Record, *, earlier: Sequence[Record] = ()) -> None:
        """Begin to push a record in the background, unless the remote has it. The first error ends all pushing.

        A record whose artifact is still at a remote is left out. `earlier` are the records of the jobs before it.
        """
        if self.counts.error is None and not self._store.is_away(record):
            self._pushes.begin(record, earlier)

    def push_new(self, record: Record, *, earlier: Sequence[Record]) -> None:
        """Begin to push a record of a build, unless builds do not push, or this store knows that the remote has it."""
        if self.settings.pushes and not record.origin and not self._store.has_pushed(record.digest, self.shown):
            self.push(record, earlier=earlier)

    def wait(self) -> UserError | None:
        """Wait until everything is pushed, and return the first error, if any."""
        self._pushes.wait()
        return self.counts.error

    # -- the end ---------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str:
        """One line about what went wrong at the remote; "" if nothing did."""
        return self.counts.trouble(self.shown, self.attempts.gone)

    def summary(self) -> str:
        """Return one line about the remote: what went wrong, or what came and went; "" if nothing happened."""
        if line := self.trouble or self.counts.transfers(self.shown):
            return line
        if self.settings.trust.is_empty:
            return f"the remote {self.shown} is not read: no key is trusted (`recipe cache trust --key KEY`)"
        return ""

    def close(self) -> None:
        """Give up what is still on its way, and close all connections. Raises RemoteError for an unfinished archive."""
        for place in self._places.values():
            self._background.run(place.close())
        self._background.close()
