"""A place in one file: a ZIP archive without compression, for machines that no network joins."""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from engine.store.remote.errors import MissingError, RefusedError, RemoteError
from engine.store.remote.objects import Entry

_DATE = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that the same records give the same archive."""


class ArchivePlace:
    """The objects of an archive. Nothing is unpacked: an object is read by its name, up to a size."""

    def __init__(self, path: Path, *, mode: Literal["r", "x"]) -> None:
        """Open an archive to read ("r"), or make a new one ("x"). Raises RemoteError."""
        self.shown = str(path)
        self._writing = asyncio.Lock()
        with self._explained():
            self._zip = zipfile.ZipFile(path, mode, compression=zipfile.ZIP_STORED, allowZip64=True)
            self._entries = {info.filename: info for info in self._zip.infolist()}

    async def read(self, name: str, *, most: int) -> bytes:
        """Return an object, as `RemotePlace.read` describes."""
        info = self._entries.get(name)
        if info is None:
            raise MissingError(f"{self.shown}: there is no {name}")
        if info.file_size > most or info.compress_type != zipfile.ZIP_STORED:
            raise RefusedError("too long", f"{name} has {info.file_size} bytes, at most {most} are allowed")
        with self._explained():
            return await asyncio.to_thread(self._zip.read, info)

    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool:
        """Add an object. An object that is there stays, because nothing in an archive is replaced."""
        del create
        async with self._writing:
            if name in self._entries:
                return False
            info = zipfile.ZipInfo(name, date_time=_DATE)
            self._entries[name] = info
            with self._explained():
                await asyncio.to_thread(self._zip.writestr, info, data)
        return True

    async def entry(self, name: str) -> Entry | None:
        """Return what is known of an object, as `RemotePlace.entry` describes."""
        info = self._entries.get(name)
        return None if info is None else Entry(name, info.file_size, 0.0)

    async def list(self, prefix: str) -> AsyncIterator[Entry]:
        """Yield the objects of a folder, as `RemotePlace.list` describes."""
        for name, info in sorted(self._entries.items()):
            if name.startswith(f"{prefix}/"):
                yield Entry(name, info.file_size, 0.0)

    async def remove(self, name: str) -> None:
        """Raise RemoteError: nothing is removed from an archive."""
        raise RemoteError(f"{self.shown}: nothing can be removed from an archive, {name} neither")

    async def close(self) -> None:
        """Write the archive's index to the disk."""
        with self._explained():
            self._zip.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise RemoteError(f"there is a file {self.shown} already", hint="name another file with -o") from None
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise RemoteError(f"{self.shown} cannot be used as an archive: {reason}") from None
