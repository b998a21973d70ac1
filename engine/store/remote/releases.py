"""The published packages at a remote: each is a signed copy of its record, which no age removes."""

# The object is a copy: a later build may replace the record of the same key by one of other bytes, and age removes it.

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath

from engine.digest import Digest
from engine.store.record import Record
from engine.store.releases import Release, package_of
from engine.store.remote import statement
from engine.store.remote.background import each
from engine.store.remote.objects import RELEASES, MissingError, RefusedError
from engine.store.remote.statement import LARGEST_RECORD, Statement
from engine.store.remote.tier import Tier

_LENGTH = 64
"""The hexadecimal digits of a SHA-256."""


class ReleaseTier(Tier):
    """A remote as `recipe publish` uses it. Its methods raise RemoteError."""

    def releases(self, digits: str = "") -> dict[Release, bytes]:
        """Return the releases whose SHA-256 or key begins with some digits, each with its envelope.

        What is refused is counted, and has the reason and no key. A web server cannot list: it needs a whole SHA-256.
        """
        return self._background.run(self._releases(digits))

    async def _releases(self, digits: str) -> dict[Release, bytes]:
        names = [digits]
        if len(digits) < _LENGTH:
            names = [PurePosixPath(entry.name).stem for entry in await self._remote.listed(RELEASES)]
        every: dict[Release, bytes] = {}

        async def one(sha256: str) -> None:
            with suppress(MissingError):  # let go meanwhile
                raw = await self._remote.read(_name(sha256), most=LARGEST_RECORD)
                try:
                    read, _ = self._judged(sha256, raw)
                    every[Release(sha256, read.record.digest, read.recipe)] = raw
                except RefusedError as error:
                    self.counts.refuse(error)
                    every[Release(sha256, Digest(""), "", error.what)] = raw

        # Digits are most likely those of a SHA-256; to compare keys, every release is read.
        await each([name for name in names if name.startswith(digits)] or names, one)
        return {release: raw for release, raw in every.items() if release.matches(digits)}

    def _judged(self, sha256: str, raw: bytes) -> tuple[Statement, str]:
        read, signer = statement.judged(raw, None, self.settings.trust)
        if (other := package_of(read.files)) != sha256:
            raise RefusedError("other package", f"the record is that of the package {other}")
        return read, signer

    def take(self, release: Release, raw: bytes) -> Record:
        """Bring a release into the store, in the place of another artifact of its key. Raises OSError, too."""
        read, signer = self._judged(release.sha256, raw)
        record = replace(read.record, origin={"remote": self.shown, "signer": signer})
        self._store.use(record.digest)
        with self._store.adding():
            self._store.adopt({record.digest: raw}, [record])
        self.bring(record)
        return record

    def keep(self, release: Release, record: Record) -> None:
        """Write a release whose files are in the store, unless the remote has it. Raises UserError and OSError."""
        self._background.run(self._pushes.release(_name(release.sha256), record, release))

    def forget(self, release: Release) -> None:
        """Remove a release: a later collection removes its blobs."""
        self._background.run(self._pushes.remove(_name(release.sha256)))


def _name(sha256: str) -> str:
    return f"{RELEASES}/{sha256}.json"
