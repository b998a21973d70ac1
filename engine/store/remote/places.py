"""The place of a URL: which transport it needs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from engine.errors import UsageError
from engine.store.remote.guard import GuardedPlace, Transport
from engine.store.remote.objects import shown
from engine.text import distribution

OBJECT_STORES = ("s3", "gs", "az", "file")
"""Schemes that obstore serves; `file` is a folder, for example a mounted share."""
WEB = ("http", "https")


def place_of(url: str, *, environ: Mapping[str, str], writes: bool) -> GuardedPlace:
    """Return the place of a URL. Raises UsageError for a URL that no transport serves.

    With `writes`, the credentials are those for writing (variables that begin with RECIPE_WRITE_) where there are any.
    Settings that a library refuses are a RemoteError of the first request.
    """
    transport = _transport(url)
    return GuardedPlace(shown(url), lambda: transport(url, environ=environ, writes=writes))


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
