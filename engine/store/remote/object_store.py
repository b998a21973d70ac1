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
from obstore.store import LocalStore, from_url

from engine.store.remote.guard import PATIENCE, first_line, limit, measured, within
from engine.store.remote.objects import DeniedError, Entry, MissingError, RefusedError, RemoteError
from engine.system import regular

_PIECE = 1 << 18
"""Bytes of an object that are read between two looks at the """
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
_PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
_WRITE = "RECIPE_WRITE_"
_ENDPOINTS = ("aws_endpoint_url", "aws_endpoint", "azure_storage_endpoint", "azure_endpoint", "google_base_url")
_CLIENT = (
    "allow_http", "allow_invalid_certificates", "proxy_url", "proxy_ca_certificate", "proxy_excludes",
    "root_certificate", "user_agent", "timeout", "connect_timeout", "read_timeout", "default_content_type",
    "http1_only", "http2_only", "http2_keep_alive_interval", "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle", "http2_max_frame_size", "pool_idle_timeout", "pool_max_idle_per_host",
    "randomize_addresses",
)  # fmt: skip
"""Settings of obstore's HTTP client. Among the settings of a bucket they end obstore with a panic."""
_CONNECT = "3s"
_LONGEST = "3600s"
"""The limit of obstore for one request. the guard ends slow requests much earlier."""


class ObjectStoreTransport:
    """A prefix of a bucket, or a folder. obstore never shows a partly written object."""

    def __init__(self, url: str, *, environ: Mapping[str, str], writes: bool) -> None:
        parts = urlsplit(url)
        self._scheme = parts.scheme
        self._folder = Path(unquote(parts.path)) if parts.scheme == "file" else None
        self._store = _opened(url, environ=environ, writes=writes)

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
        result = await within(PATIENCE, obstore.get_async(self._store, name))
        if result.meta["size"] > most:
            raise RefusedError("too long", f"{name} has {result.meta['size']} bytes, at most {most} are allowed")
        if result.meta["size"] <= _PIECE:
            return bytes(await within(limit(result.meta["size"]), result.bytes_async()))
        stream = aiter(result.stream(min_chunk_size=_PIECE))
        return b"".join([piece async for piece in measured(name, stream)])

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
            case exceptions.BaseError() if "(code: AccessDenied)" in text:  # the answer to one of many removals
                return DeniedError(f"{place}: it cannot be removed", hint="the right s3:DeleteObject is needed")
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


def _opened(url: str, *, environ: Mapping[str, str], writes: bool) -> Any:
    """Return the store of obstore for a URL. Raises the errors of obstore, and ValueError for a wrong setting.

    With `writes`, a variable that begins with RECIPE_WRITE_ replaces the one without this prefix.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStore(unquote(parts.path), mkdir=True)
    config = _config(_PREFIXES[parts.scheme], environ, writes=writes)
    client = {name: config.pop(f"{_PREFIXES[parts.scheme].lower()}{name}", "") for name in _CLIENT}
    options: dict[str, Any] = {name: value for name, value in client.items() if value}
    options.setdefault("allow_http", any(config.get(name, "").startswith("http://") for name in _ENDPOINTS))
    options |= {"connect_timeout": _CONNECT, "timeout": _LONGEST}
    if parts.scheme == "s3" and "aws_access_key_id" not in config and not any("role" in name for name in config):
        config.setdefault("aws_skip_signature", "true")
    return _from_url(url, config, options)


def _config(prefix: str, environ: Mapping[str, str], *, writes: bool) -> dict[str, str]:
    """Return the settings in the variables of a cloud. An empty variable is an unset one.

    A CI sets a secret that a pull request does not get to "".
    """
    config = {name.lower(): value for name, value in environ.items() if value and name.startswith(prefix)}
    if writes:
        own = {name.removeprefix(_WRITE): value for name, value in environ.items() if name.startswith(_WRITE)}
        config |= {name.lower(): value for name, value in own.items() if value and name.startswith(prefix)}
    config = {name: value.strip() for name, value in config.items()}
    for name, value in config.items():  # obstore ends with a panic where it makes a header or a URL of such a value
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"the variable {name.upper()} must be one line of ASCII characters")
        if name in _ENDPOINTS and not _has_host(value):
            raise ValueError(f"the variable {name.upper()} must be a URL like https://HOST")
    return config


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0 and " " not in parts.netloc
    except ValueError:
        return False


def _from_url(url: str, config: dict[str, str], options: Any) -> Any:
    """Open a bucket. Variables of other programs, such as AWS_PAGER, are left out when obstore does not know them."""
    while True:
        settings: Any = config
        try:
            # The attempts are counted by `engine.store.remote.attempts`, which knows how long a build may wait.
            return from_url(url, config=settings, client_options=options, retry_config={"max_retries": 0})
        except exceptions.UnknownConfigurationKeyError as error:
            unknown = [name for name in config if f"'{name}'" in str(error)]
            if not unknown:
                raise
            for name in unknown:
                del config[name]
