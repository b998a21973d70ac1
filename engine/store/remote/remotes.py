"""Remotes: the one of a URL, with the transport that it needs, and an archive, for machines that no network joins."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from engine.errors import UsageError
from engine.store.remote.guard import GuardedRemote, Transport, first_line
from engine.store.remote.objects import Entry, MissingError, RefusedError, RemoteError, shown
from engine.system import regular
from engine.text import distribution

OBJECT_STORES = ("s3", "gs", "az", "file")
"""Schemes that obstore serves; `file` is a folder, for example a mounted share."""
WEB = ("http", "https")
_DATE = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that the same records give the same archive."""
_AGAIN = "copy the archive again, or make a new one with `recipe cache export`"


def remote_of(url: str, *, environ: Mapping[str, str], writes: bool) -> GuardedRemote:
    """Return the remote of a URL. Raises UsageError for a URL that no transport serves.

    With `writes`, the credentials are those for writing (variables that begin with RECIPE_WRITE_) where there are any.
    Settings that a library refuses are a RemoteError of the first request.
    """
    transport = _transport(url)
    return GuardedRemote(shown(url), lambda: transport(url, environ=environ, writes=writes))


def _transport(url: str) -> Callable[..., Transport]:
    try:
        url.encode()
        parts = urlsplit(url)
        scheme, _ = parts.scheme, parts.port
    except ValueError:
        raise UsageError(
            f"{shown(url)!r} is no URL of a remote",
            hint="in a user or password, write %23 for #, %2F for /, %3F for ?, %40 for @ and %3A for :",
        ) from None
    if scheme in (*OBJECT_STORES, *WEB) and not url.startswith(f"{scheme}://"):
        rest = url.removeprefix(f"{scheme}:").lstrip("/")
        slashes = "///" if scheme == "file" else "//"
        raise UsageError(f"{shown(url)!r} is no URL", hint=f"write {scheme}:{slashes}{rest}")
    if scheme in OBJECT_STORES:
        _need("obstore", url)
        from engine.store.remote.object_store import ObjectStoreTransport

        return ObjectStoreTransport
    if scheme in WEB:
        _need("httpx", url)
        from engine.store.remote.web import WebTransport

        return WebTransport
    raise UsageError(
        f"no remote can be at {shown(url)!r}",
        [f"schemes: {', '.join(f'{each}://' for each in (*OBJECT_STORES, *WEB))}"],
        "a folder is named like file:///mnt/team/cache",
    )


def _need(module: str, url: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise UsageError(
            f"the remote {shown(url)} needs the Python package {module}, which is not installed",
            hint=distribution.install("remote"),
        )


def archive(path: Path, *, mode: Literal["r", "x"]) -> GuardedRemote:
    """Open an archive to read ("r"), or make a new one ("x"): a ZIP archive without compression. Raises RemoteError."""
    try:
        transport = _Archive(path, mode=mode)
    except FileExistsError:
        raise RemoteError(f"there is a file {path} already", hint="name another file with -o") from None
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        hint = _AGAIN if mode == "r" else "name a file in a folder that you may write"
        raise RemoteError(f"{path} cannot be used as an archive: {reason}", hint=hint) from None
    return GuardedRemote(str(path), lambda: transport)


class _Archive:
    """The objects of an archive. Nothing is unpacked: an object is read by its name, up to a size."""

    def __init__(self, path: Path, *, mode: Literal["r", "x"]) -> None:
        self._writing = asyncio.Lock()
        file = io.BufferedReader(regular.open_file(path)) if mode == "r" else path
        self._zip = zipfile.ZipFile(file, mode, compression=zipfile.ZIP_STORED, allowZip64=True)
        self._entries = {info.filename: info for info in self._zip.infolist()}

    async def read(self, name: str, *, most: int) -> bytes:
        """Return an object."""
        info = self._info(name)
        if info.file_size > most or info.compress_type != zipfile.ZIP_STORED:
            raise RefusedError("too long", f"{name} has {info.file_size} bytes, at most {most} are allowed")
        return await asyncio.to_thread(self._zip.read, info)

    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool:
        """Add an object. An object that is there stays, because nothing in an archive is replaced."""
        del create
        async with self._writing:
            if name in self._entries:
                return False
            info = zipfile.ZipInfo(name, date_time=_DATE)
            self._entries[name] = info
            await asyncio.to_thread(self._zip.writestr, info, data)
        return True

    async def entry(self, name: str) -> Entry:
        """Return what is known of an object."""
        return Entry(name, self._info(name).file_size, 0.0)

    async def list(self, prefix: str) -> AsyncIterator[list[Entry]]:
        """Yield the objects of a folder."""
        names = sorted(name for name in self._entries if name.startswith(f"{prefix}/"))
        yield [Entry(name, self._entries[name].file_size, 0.0) for name in names]

    async def remove(self, name: str) -> None:
        """Raise RemoteError: nothing is removed from an archive."""
        raise RemoteError(f"nothing can be removed from an archive, {name} neither")

    async def close(self) -> None:
        """Write the archive's index to the disk."""
        self._zip.close()

    def meaning(self, error: BaseException, place: str) -> RemoteError | None:
        """Return the refusal of an archive that cannot be read: a further attempt is useless."""
        if self._zip.mode == "r":
            return RefusedError("damaged archive", f"{place}: {first_line(error)}; {_AGAIN}")
        return None

    def _info(self, name: str) -> zipfile.ZipInfo:
        if name not in self._entries:
            raise MissingError(f"there is no {name}")
        return self._entries[name]
