"""Hub files: download one file through the hub's own cache, and verify the file by the digest that the hub states."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import StepError
from engine.kit.checkpoints import hub_errors
from engine.kit.checkpoints.hub_errors import Hub
from engine.text import sizes

PATIENCE = 8.0
"""Seconds to wait until the hub begins to answer a request. Without a network, a build must fail at once."""

_RESTARTS = 3
"""How often the download of a file may start again from its first byte after a cut connection."""
_IDENTITY = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")

_Result = TypeVar("_Result")


class TooManyCuts(Exception):  # noqa: N818 - named after its cause
    """The connection was cut more than `_RESTARTS` times during one download."""


@dataclass(frozen=True)
class Repository:
    """A repository of the hub at one revision."""

    hub: Hub
    name: str
    revision: str

    @property
    def cached(self) -> Path:
        """The repository's folder in the cache of huggingface_hub, with the folders `blobs`, `refs` and `snapshots`."""
        return Path(self.hub.cache) / f"models--{self.name.replace('/', '--')}"

    def ask(self, call: Callable[[], _Result], target: str = "") -> _Result:
        """Call the hub's client through `call`; turn its exceptions into one StepError about the file `target`."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the client raises what its HTTP library, the disk and JSON raise
            target = f"{target} of hf:{self.name}" if target else f"hf:{self.name}"
            explained = hub_errors.explain(
                error, target=target, repository=self.name, revision=self.revision, hub=self.hub
            )
        # Outside the handler: the client's own errors may quote headers and must not travel along as a cause.
        raise explained


@dataclass(frozen=True)
class File:
    """The hub's description of a file; `identity` is a SHA-256 (64 digits), git's SHA-1 (40 digits) or None."""

    name: str
    size: int | None
    identity: str | None

    @classmethod
    def stated(cls, name: str, size: int | None, identity: str | None) -> File:
        """Return the description of a file from the hub's answer; an `identity` that is no digest becomes None."""
        return cls(name, size, identity if _IDENTITY.fullmatch(identity or "") else None)


def fetch(repository: Repository, file: File) -> Path:
    """Return the path of the verified file in the hub's cache.

    A damaged copy of the file in the cache is downloaded once more. Raises StepError.
    """
    hub = repository.hub
    cached = repository.cached / "snapshots" / repository.revision / file.name
    was_there = cached.is_file()
    if not was_there and hub.offline:
        raise hub_errors.offline(f"{file.name} of hf:{repository.name}", hub, "it")
    if was_there:
        print(f"checking {file.name} in the cache ({sizes.decimal(cached.stat().st_size)})")
    else:
        print(f"fetching {file.name}" + (f" ({sizes.decimal(file.size)})" if file.size is not None else ""))
        _download(repository, file, force=False)
    difference = _difference(cached, file)
    if difference and was_there and not hub.offline:
        print(f"{file.name} in the cache is damaged ({difference}): fetching it again")
        _download(repository, file, force=True)
        difference = _difference(cached, file)
    if difference:
        raise _corrupt(repository, file, cached, difference)
    return cached


def _download(repository: Repository, file: File, *, force: bool) -> None:
    from huggingface_hub import hf_hub_download

    hub = repository.hub
    repository.ask(
        functools.partial(
            hf_hub_download,
            repository.name,
            file.name,
            revision=repository.revision,
            endpoint=hub.endpoint,
            token=hub.token or False,
            cache_dir=hub.cache,
            etag_timeout=PATIENCE,
            force_download=force,
            tqdm_class=_counter(),
        ),
        file.name,
    )


def _counter() -> type:
    """Return a class of progress bars that print nothing, and that end a download which starts again too often.

    The hub's client starts a download again without end as long as each attempt brings some bytes. Negative progress
    means that a new attempt began at the first byte.
    """
    from huggingface_hub.utils import tqdm

    class Counter(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})
            self.restarts = 0

        def update(self, n: float | None = 1) -> bool | None:
            self.restarts += (n or 0) < 0
            if self.restarts > _RESTARTS:
                raise TooManyCuts(f"started from nothing {self.restarts} times")
            return None

    return Counter


def _difference(path: Path, file: File) -> str:
    """Return how a file differs from the size and digest that the hub states; "" for no difference."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"{size} bytes, the hub states {file.size}"
    if file.identity is None:
        return ""
    large = len(file.identity) == 64  # noqa: PLR2004 - hexadecimal digits of a SHA-256
    state = hashlib.sha256() if large else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as content:
        while chunk := content.read(1 << 20):
            state.update(chunk)
    if state.hexdigest() == file.identity:
        return ""
    kind = "SHA-256" if large else "git SHA-1"
    return f"{kind} {state.hexdigest()}, the hub states {file.identity}"


def _corrupt(repository: Repository, file: File, cached: Path, difference: str) -> StepError:
    """Return the error for a damaged file, and remove the file from the hub's cache unless HF_HUB_OFFLINE is set."""
    hub = repository.hub
    facts = [f"endpoint: {hub.host}", f"revision: {repository.revision}", difference]
    with cached.open("rb") as content:
        if content.read(512).lstrip().lower().startswith((b"<!doctype html", b"<html")):
            facts.append("it is a web page: a proxy or a login stands between here and the hub")
    if hub.offline:
        facts.append("HF_HUB_OFFLINE is set, so it is not fetched again")
    else:
        cached.resolve().unlink(missing_ok=True)
        cached.unlink(missing_ok=True)
    return StepError(
        f"{file.name} of hf:{repository.name} is not what the hub states",
        facts,
        f"build again; if it stays so, check HF_ENDPOINT and the proxy settings, or {hub_errors.LOCAL}",
    )
