"""A place on a web server that takes GET, HEAD, PUT and DELETE, for example nginx with DAV."""

from __future__ import annotations

import email.utils
import http
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn
from urllib.parse import quote, urlsplit

import httpx

from engine.store.remote import pace
from engine.store.remote.errors import DeniedError, MissingError, RefusedError, RemoteError
from engine.store.remote.objects import Entry, shown

_TOKEN, _WRITE_TOKEN = "RECIPE_REMOTE_TOKEN", "RECIPE_WRITE_REMOTE_TOKEN"
_DENIED = (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN, http.HTTPStatus.METHOD_NOT_ALLOWED)
_CONNECTIONS = 32


class WebPlace:
    """A folder of a web server. Redirections are errors: credentials go to the named server only."""

    def __init__(self, url: str, *, environ: Mapping[str, str], writes: bool) -> None:
        self.shown = shown(url)
        self._base = url.rstrip("/")
        token = (environ.get(_WRITE_TOKEN) if writes else None) or environ.get(_TOKEN)
        limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
        timeout = httpx.Timeout(None, connect=pace.PATIENCE, read=pace.PATIENCE)
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}"} if token else {}, limits=limits, timeout=timeout,
            follow_redirects=False, trust_env=urlsplit(url).hostname not in ("localhost", "127.0.0.1"),
        )  # fmt: skip

    async def read(self, name: str, *, most: int) -> bytes:
        """Return an object, as `RemotePlace.read` describes."""
        with self._explained(name):
            # `identity`: the bytes are those of the object, and no compressed bytes can grow.
            headers = {"Accept-Encoding": "identity"}
            async with self._client.stream("GET", self._address(name), headers=headers) as response:
                self._check(response, name)
                meter = pace.Meter(name)
                stream = aiter(response.aiter_raw())
                pieces, size = [], 0
                while (piece := await meter.next(stream)) is not None:
                    pieces.append(piece)
                    size += len(piece)
                    if size > most:
                        raise RefusedError("too long", f"{name} has more than the {most} bytes that are allowed")
                return b"".join(pieces)

    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool:
        """Write an object, as `RemotePlace.write` describes."""
        if create and await self.entry(name) is not None:
            return False
        headers = {"If-None-Match": "*"} if create else {}
        with self._explained(name):
            put = self._client.put(self._address(name), content=data, headers=headers)
            response = await pace.within(pace.limit(len(data)), put)
            if create and response.status_code == http.HTTPStatus.PRECONDITION_FAILED:
                return False
            self._check(response, name)
        return True

    async def entry(self, name: str) -> Entry | None:
        """Return what is known of an object, as `RemotePlace.entry` describes."""
        with self._explained(name):
            response = await pace.within(pace.PATIENCE, self._client.head(self._address(name)))
            if response.status_code == http.HTTPStatus.NOT_FOUND:
                return None
            self._check(response, name)
        modified = response.headers.get("Last-Modified")
        seconds = email.utils.parsedate_to_datetime(modified).timestamp() if modified else 0.0
        return Entry(name, int(response.headers.get("Content-Length", 0)), seconds)

    def list(self, prefix: str) -> AsyncIterator[Entry]:
        """Raise RemoteError: HTTP has no listing."""
        self._no_listing(prefix)

    def _no_listing(self, prefix: str) -> NoReturn:
        raise RemoteError(
            f"{self.shown}/{prefix}: the objects of a web server cannot be listed",
            hint="the server's own retention removes what is old; or use an object store or a shared folder",
        )

    async def remove(self, name: str) -> None:
        """Remove an object, as `RemotePlace.remove` describes."""
        with self._explained(name):
            response = await pace.within(pace.PATIENCE, self._client.delete(self._address(name)))
            if response.status_code != http.HTTPStatus.NOT_FOUND:
                self._check(response, name)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    def _address(self, name: str) -> str:
        return f"{self._base}/{quote(name)}"

    def _check(self, response: httpx.Response, name: str) -> None:
        if response.is_success:
            return
        place = f"{self.shown}/{name}"
        status = f"{response.status_code} {response.reason_phrase}"
        if response.status_code == http.HTTPStatus.NOT_FOUND:
            raise MissingError(f"{place}: there is no such object")
        if response.status_code in _DENIED:
            raise DeniedError(f"{place}: the credentials are refused", [status])
        raise RemoteError(f"{place}: the server answers {status}")

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        place = f"{self.shown}/{name}"
        try:
            yield
        except TimeoutError:
            raise RemoteError(f"{place}: no answer in time") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise RemoteError(f"{place}: {str(error) or type(error).__name__}") from None
