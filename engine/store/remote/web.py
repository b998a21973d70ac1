"""A web server that takes GET, HEAD, PUT and DELETE, for example nginx with DAV."""

from __future__ import annotations

import email.utils
import http.client
from collections.abc import AsyncIterator, Mapping
from urllib.parse import quote, urlsplit

import httpx

from engine.store.remote.guard import PATIENCE, measured, within
from engine.store.remote.objects import DeniedError, Entry, MissingError, RefusedError, RemoteError, shown

_TOKEN, _WRITE_TOKEN = "RECIPE_REMOTE_TOKEN", "RECIPE_WRITE_REMOTE_TOKEN"
_DENIED = (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN, http.HTTPStatus.METHOD_NOT_ALLOWED)
_CREDENTIALS = f"user and password in the remote's URL, or {_TOKEN}, must be those that the server knows"
_NO_LISTING = "the server's own retention removes what is old; or use an object store or a shared folder"
_CONNECTIONS = 32


class WebTransport:
    """A folder of a web server. Redirections are errors: credentials go to the named server only."""

    def __init__(self, url: str, *, environ: Mapping[str, str], writes: bool) -> None:
        """Raises DeniedError for a token that no header may have."""
        self._shown = shown(url)
        self._base = url.rstrip("/")
        name = _WRITE_TOKEN if writes and environ.get(_WRITE_TOKEN) else _TOKEN
        token = environ.get(name, "").strip()
        if not (token.isascii() and token.isprintable()):
            what = f"{self._shown}: the token in {name} cannot be sent"
            raise DeniedError(what, hint=f"{name} must be one line of ASCII characters")
        limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
        timeout = httpx.Timeout(None, connect=PATIENCE, read=PATIENCE)
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}"} if token else {}, limits=limits, timeout=timeout,
            follow_redirects=False, trust_env=urlsplit(url).hostname not in ("localhost", "127.0.0.1"),
        )  # fmt: skip

    async def read(self, name: str, *, most: int) -> bytes:
        """Return an object."""
        # `identity`: the bytes are those of the object, and no compressed bytes can grow.
        request = self._client.build_request("GET", self._address(name), headers={"Accept-Encoding": "identity"})
        response = await within(PATIENCE, self._client.send(request, stream=True))
        try:
            self._check(response, name)
            pieces, size = [], 0
            async for piece in measured(name, response.aiter_raw()):
                pieces.append(piece)
                size += len(piece)
                if size > most:
                    raise RefusedError("too long", f"{name} has more than the {most} bytes that are allowed")
            return b"".join(pieces)
        finally:
            await response.aclose()

    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool:
        """Write an object."""
        headers = {"If-None-Match": "*"} if create else {}
        if create:
            head = await self._client.head(self._address(name))
            if head.status_code != http.HTTPStatus.NOT_FOUND:
                self._check(head, name)
                return False
        response = await self._client.put(self._address(name), content=data, headers=headers)
        if create and response.status_code == http.HTTPStatus.PRECONDITION_FAILED:
            return False
        self._check(response, name)
        return True

    async def entry(self, name: str) -> Entry:
        """Return what is known of an object."""
        response = await self._client.head(self._address(name))
        self._check(response, name)
        modified = response.headers.get("Last-Modified")
        seconds = email.utils.parsedate_to_datetime(modified).timestamp() if modified else 0.0
        return Entry(name, int(response.headers.get("Content-Length", 0)), seconds)

    async def list(self, prefix: str) -> AsyncIterator[list[Entry]]:
        """Raise RemoteError: HTTP has no listing."""
        what = f"{self._shown}/{prefix}: the objects of a web server cannot be listed"
        raise DeniedError(what, hint=_NO_LISTING)
        yield []

    async def remove(self, name: str) -> None:
        """Remove an object."""
        self._check(await self._client.delete(self._address(name)), name)

    async def close(self) -> None:
        """Close all connections."""
        await within(PATIENCE, self._client.aclose())

    def meaning(self, error: BaseException, place: str) -> RemoteError | None:
        """Return what an error of httpx says about the remote."""
        return RemoteError(f"{place}: no answer in time") if isinstance(error, httpx.TimeoutException) else None

    def _address(self, name: str) -> str:
        return f"{self._base}/{quote(name)}"

    def _check(self, response: httpx.Response, name: str) -> None:
        if response.is_success:
            return
        place = f"{self._shown}/{name}"
        code = response.status_code
        status = f"{code} {http.client.responses.get(code, '')}".strip()
        if code == http.HTTPStatus.NOT_FOUND:
            raise MissingError(f"{place}: there is no such object")
        if code in _DENIED:
            raise DeniedError(f"{place}: the credentials are refused ({status})", hint=_CREDENTIALS)
        hint = "write the address that the server sends to into the remote's URL" if response.is_redirect else ""
        raise RemoteError(f"{place}: the server answers {status}", hint=hint)
