"""An object store (S3, Google Cloud Storage, Azure) or a folder, by obstore."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore import exceptions

from engine.store.remote import buckets, pace
from engine.store.remote.errors import DeniedError, MissingError, RefusedError, RemoteError
from engine.store.remote.guard import first_line
from engine.store.remote.objects import Entry
from engine.system import regular

_PIECE = 1 << 18
"""Bytes of an object that are read between two looks at the pace."""
_SMALL = 1 << 16
"""An object of at most so many bytes comes in one answer."""
_PAGE = 1000
"""Objects of a listing that come at a time."""
_REASON = re.compile(r"(?<=status code: )\d{3} [A-Za-z ]+|(?<=<Code>)\w+")
_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist")
_UNFINISHED = re.compile(r".*#[0-9]+")
"""What obstore calls a file of a folder that is not written to its end."""
_RIGHTS: Mapping[str, str] = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must belong to a user with the rights s3:GetObject, "
    "s3:ListBucket and, to push, s3:PutObject",
    "gs": "the variables GOOGLE_... must name an account that may read, list and, to push, write objects",
    "az": "the variables AZURE_... must name an account that may read, list and, to push, write blobs",
    "file": "give this user the permissions to read the folder and, to push, to write there",
}


class ObjectStoreTransport:
    """A prefix of a bucket, or a folder. obstore never shows a partly written object."""

    def __init__(self, url: str, *, environ: Mapping[str, str], writes: bool) -> None:
        parts = urlsplit(url)
        self._scheme = parts.scheme
        self._folder = Path(unquote(parts.path)) if parts.scheme == "file" else None
        self._store = buckets.opened(url, environ=environ, writes=writes)

    async def read(self, name: str, *, most: int) -> bytes:
        """Return an object."""
        await self._refuse_special_file(name)
        if 0 < most <= _SMALL:
            return await self._small(name, most)
        return await self._whole(name, most)

    async def _small(self, name: str, most: int) -> bytes:
        """Return an object of few bytes from one answer: head and bytes apart cost this process twice as much."""
        try:
            raw = bytes(await obstore.get_range_async(self._store, name, start=0, length=most + 1))
        except exceptions.GenericError:
            return await self._whole(name, most)  # an empty object has no such range
        if len(raw) > most:
            raise RefusedError("too long", f"{name} has more than the {most} bytes that are allowed")
        return raw

    async def _whole(self, name: str, most: int) -> bytes:
        result = await pace.within(pace.PATIENCE, obstore.get_async(self._store, name))
        if result.meta["size"] > most:
            raise RefusedError("too long", f"{name} has {result.meta['size']} bytes, at most {most} are allowed")
        if result.meta["size"] <= _PIECE:
            return bytes(await pace.within(pace.limit(result.meta["size"]), result.bytes_async()))
        meter = pace.Meter(name)
        pieces: list[bytes] = []
        stream = aiter(result.stream(min_chunk_size=_PIECE))
        while (piece := await meter.next(stream)) is not None:
            pieces.append(piece)
        return b"".join(pieces)

    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool:
        """Write an object."""
        try:
            mode: Any = "create" if create else "overwrite"
            await obstore.put_async(self._store, name, data, mode=mode, use_multipart=False)
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            return False
        return True

    async def upload(self, name: str, pieces: AsyncIterator[bytes]) -> None:
        """Write an object in parts."""
        await obstore.put_async(self._store, name, pieces)

    async def sha256(self, name: str) -> str:
        """Return the SHA-256 of an object."""
        await self._refuse_special_file(name)
        digest = hashlib.sha256()
        async for piece in (await obstore.get_async(self._store, name)).stream(min_chunk_size=_PIECE):
            digest.update(piece)
        return digest.hexdigest()

    async def entry(self, name: str) -> Entry:
        """Return what is known of an object."""
        await self._refuse_special_file(name)
        meta = await obstore.head_async(self._store, name)
        return Entry(name, int(meta["size"]), meta["last_modified"].timestamp())

    async def list(self, prefix: str) -> AsyncIterator[list[Entry]]:
        """Yield the objects of a folder, many at a time."""
        if self._folder is not None:
            files = _files(self._folder, prefix)
            while entries := await asyncio.to_thread(lambda: list(islice(files, _PAGE))):
                yield entries
            return
        async for batch in obstore.list(self._store, prefix, chunk_size=_PAGE):
            yield [Entry(str(each["path"]), int(each["size"]), each["last_modified"].timestamp()) for each in batch]

    async def remove(self, name: str) -> None:
        """Remove an object."""
        await obstore.delete_async(self._store, name)

    async def close(self) -> None:
        """Do nothing: obstore closes its connections itself."""

    def meaning(self, error: BaseException, place: str) -> RemoteError | None:
        """Return what an error of obstore says about the remote."""
        text = str(error)
        reason = ", ".join(_REASON.findall(text)) or first_line(error)
        match error:
            case _ if _NO_BUCKET.search(text):
                return RemoteError(f"{place}: there is no such bucket", hint="make it, or correct the remote's URL")
            case FileNotFoundError() | exceptions.NotFoundError():
                return MissingError(f"{place}: there is no such object")
            case exceptions.PermissionDeniedError() | exceptions.UnauthenticatedError() | PermissionError():
                return DeniedError(f"{place}: the credentials are refused ({reason})", hint=_RIGHTS[self._scheme])
            case exceptions.BaseError() if "redirect" in text or reason.startswith("3"):
                hint = "the bucket is elsewhere: AWS_REGION and AWS_ENDPOINT_URL say where"
                return RemoteError(f"{place}: the server answers with a redirection ({reason})", hint=hint)
        return RemoteError(f"{place}: {reason}")

    async def _refuse_special_file(self, name: str) -> None:
        """Raise RefusedError for a named pipe, a device or another object of a folder that is no regular file."""
        if self._folder is not None:
            try:  # in a thread, like all that touches the folder: its disk may not answer
                (await asyncio.to_thread(regular.open_file, self._folder / name)).close()
            except regular.NotRegularError as error:
                raise RefusedError("no regular file", f"{name}: {error.strerror}") from None


def _files(folder: Path, prefix: str) -> Iterator[Entry]:
    """Yield the regular files of a folder whose names are text. Raises OSError for a folder that cannot be read."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    seen: set[str] = set()
    for place, folders, names in os.walk(folder / prefix, onerror=refuse, followlinks=True):
        seen.add(os.path.realpath(place))
        folders[:] = [each for each in folders if os.path.realpath(os.path.join(place, each)) not in seen]
        for path in (os.path.join(place, name) for name in names if not _UNFINISHED.fullmatch(name)):
            if os.path.isfile(path) and os.fsencode(path).decode(errors="ignore") == path:
                status = os.stat(path)
                yield Entry(os.path.relpath(path, folder), status.st_size, status.st_mtime)
