"""A model repository on a remote: attempts, large files in parts, sure creation, and turns of its publishers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from engine.errors import StepError, StoreError, UsageError
from engine.publishing.package import Listing, PackageFile
from engine.store.remote import attempts
from engine.store.remote.guard import GuardedRemote
from engine.store.remote.objects import MissingError, RefusedError, shown
from engine.store.remote.remotes import OBJECT_STORES, remote_of
from engine.system import regular

T = TypeVar("T")
_WHOLE = 8 << 20
"""Files up to this size are written by one request."""
_PIECE = 8 << 20
_MOST = 16 << 20
"""The largest object, in bytes, that is read whole."""
LEASE = 30.0
"""Seconds after which a turn that its holder has not given back is taken from it."""
_HOLD = LEASE / 2
"""Seconds for which a holder writes at most."""
_LOOK = 0.2


class ModelRepository:
    """A Triton model repository in a folder or an object store."""

    def __init__(self, url: str, *, writes: bool) -> None:
        """Raises UsageError for a URL where no model repository can be, and RemoteError for wrong settings."""
        parts = urlsplit(url)
        if parts.scheme not in OBJECT_STORES:
            raise UsageError(
                f"no model repository can be at {shown(url)!r}",
                [f"schemes: {', '.join(f'{each}://' for each in OBJECT_STORES)}"],
                f"a folder is named like file://{Path(url).absolute() if not parts.scheme else '/mnt/models'}",
            )
        if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
            raise UsageError(f"{url} names no folder of this machine", hint="write file:///PATH, with three slashes")
        self.shown = shown(url).rstrip("/")
        self._folder = Path(unquote(parts.path)) if parts.scheme == "file" else None
        self._attempt = attempts.patient().make
        # A reader must not make the folder that it reads; obstore would.
        absent = not writes and self._folder is not None and not self._folder.is_dir()
        self._remote = None if absent else remote_of(url, environ=os.environ, writes=writes).checked()

    @property
    def is_folder(self) -> bool:
        """Whether the repository is a folder, which a server reads in milliseconds."""
        return self._folder is not None

    async def listing(self) -> Listing:
        """Return all objects."""
        remote = self._remote
        if remote is None:
            return Listing({})

        async def listed() -> Listing:
            return Listing({entry.name: entry async for entry in remote.list("")})

        return await self._attempt(listed)

    async def read(self, name: str, *, most: int = _MOST) -> bytes | None:
        """Return an object, or None for a missing one."""
        remote = self._remote
        if remote is None:
            return None
        try:
            return await self._attempt(lambda: remote.read(name, most=most))
        except MissingError:
            return None

    async def is_whole(self, name: str, size: int, sha256: str) -> bool:
        """Say whether an object of `size` bytes has this SHA-256; all its bytes are read."""
        remote = self._remote
        if remote is None:
            return False
        try:
            return await self._attempt(lambda: remote.sha256(name, size)) == sha256
        except (MissingError, RefusedError):
            return False

    async def write(self, name: str, data: bytes) -> None:
        """Write an object, over the one that is there."""
        remote = self._writable()
        await self._attempt(lambda: remote.write(name, data))

    async def create(self, name: str, data: bytes) -> bool:
        """Write an object unless there is one; return whether it has this `data`: an answer may have been lost."""
        remote = self._writable()
        if await self._attempt(lambda: remote.write(name, data, create=True)):
            return True
        return await self.read(name) == data

    async def upload(self, name: str, file: PackageFile, on_bytes: Callable[[int], None]) -> None:
        """Write a file, a large one in parts. Raises StepError, before it can be seen, where it has changed."""
        remote = self._writable()
        if file.size <= _WHOLE:
            data = regular.read(file.path)
            _same(file, hashlib.sha256(data).hexdigest())
            await self._attempt(lambda: remote.write(name, data))
            on_bytes(file.size)
        else:
            await self._attempt(lambda: remote.upload(name, _pieces(file, on_bytes), file.size))

    async def remove(self, name: str) -> None:
        """Remove an object."""
        remote = self._writable()
        await self._attempt(lambda: remote.remove(name))

    def remove_folder(self, name: str) -> None:
        """Remove what an object store has not: an empty folder, and parts that a killed writer has left in it."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(self._folder / name)

    def _writable(self) -> GuardedRemote:
        if self._remote is None:
            raise TypeError(f"{self.shown} was opened for reading only")
        return self._remote


async def _pieces(file: PackageFile, on_bytes: Callable[[int], None]) -> AsyncIterator[bytes]:
    """Yield a file's bytes. Raises StepError at the end, where the bytes are not those that were read before."""
    digest = hashlib.sha256()
    with file.path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            digest.update(piece)
            on_bytes(len(piece))
            if stream.tell() >= file.size:
                _same(file, digest.hexdigest())
            yield piece


def _same(file: PackageFile, digest: str) -> None:
    if digest != file.sha256:
        raise StepError(f"{file.path} changed while it was published", hint="build again, then publish again")


# A turn is an object with a number, created and never overwritten; the highest number has the turn. A turn that shows
# no change for a while belongs to a killed publisher: the next publisher creates the next number. Whoever was only slow
# sees before each write that the turn is lost, and stops. No clock of another machine is compared.


class Turn:
    """A publisher's right to change what a package serves."""

    def __init__(self, repository: ModelRepository, package: str, number: int, token: bytes) -> None:
        self._repository, self._package, self._number, self._token = repository, package, number, token
        self._end = time.monotonic() + _HOLD

    async def write(self, name: str, data: bytes) -> None:
        """Write an object while the turn lasts. Raises StoreError for a turn that is lost."""
        newest = max(await _turns(self._repository, self._package), default=0)
        name_of_turn = _turn_name(self._package, self._number)
        is_ours = newest == self._number and await self._repository.read(name_of_turn) == self._token
        if not is_ours or time.monotonic() > self._end:
            raise StoreError(
                f"{self._repository.shown}: another publisher of {self._package} has taken over",
                ["this one was slow for a while"],
                "publish again",
            )
        await self._repository.write(name, data)


@asynccontextmanager
async def turn(repository: ModelRepository, package: str, lease: float) -> AsyncIterator[Turn]:
    """Wait for the turn of a package, and give it back when the block ends."""
    holder = {"host": socket.gethostname(), "process": os.getpid(), "token": secrets.token_hex(8)}
    token = json.dumps(holder).encode()
    number = await _taken(repository, package, token, lease)
    try:
        yield Turn(repository, package, number, token)
    finally:
        if await repository.read(_turn_name(package, number)) == token:
            for each in sorted(await _turns(repository, package)):
                if each <= number:
                    await repository.remove(_turn_name(package, each))


async def _taken(repository: ModelRepository, package: str, token: bytes, lease: float) -> int:
    """Create the next turn as soon as there is no other, or the other one has not changed for `lease` seconds."""
    seen: bytes | None = None
    since = time.monotonic()
    while True:
        newest = max(await _turns(repository, package), default=0)
        holder = await repository.read(_turn_name(package, newest)) if newest else None
        if holder is None or (holder == seen and time.monotonic() - since > lease):
            if await repository.create(_turn_name(package, newest + 1), token):
                return newest + 1
        elif holder != seen:
            seen, since = holder, time.monotonic()
        await asyncio.sleep(_LOOK)


async def _turns(repository: ModelRepository, package: str) -> list[int]:
    pattern = re.compile(rf"\.recipe\.{re.escape(package)}\.turn\.([1-9][0-9]*)")
    listing = await repository.listing()
    return [int(match[1]) for match in map(pattern.fullmatch, listing.entries) if match]


def _turn_name(package: str, number: int) -> str:
    return f".recipe.{package}.turn.{number}"
