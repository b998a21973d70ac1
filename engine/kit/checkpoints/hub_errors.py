"""Hub errors: one clear error, with a hint and without access tokens, for each failure of the hub's client."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

from engine.errors import StepError, causes
from engine.text import redaction

LOCAL = "copy the model to a local directory and write `source: path/to/it`"
"""A hint that helps with every failed download from the hub."""

_QUERY = re.compile(r"(https?://[^\s?'\"]+)\?[^\s'\"]*")


@dataclass(frozen=True)
class Hub:
    """The hub that HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE describe, and the folder of its cache."""

    endpoint: str
    cache: str
    offline: bool
    token: str | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        """The host and port in the hub's address, without a user name and password."""
        parts = urlsplit(self.endpoint)
        return f"{parts.hostname or self.endpoint}{f':{parts.port}' if parts.port else ''}"

    def redacted(self, text: str) -> str:
        """Return `text` without access tokens, logins, and signatures in URLs."""
        environment = {**os.environ, "HF_TOKEN": self.token or ""}
        return _QUERY.sub(r"\1", redaction.redacted(text, environment))


def explain(error: Exception, *, target: str, repository: str, revision: str, hub: Hub) -> StepError:
    """Return one clear error for an exception that the hub's client raised while it was fetching `target`."""
    what = f"{target} could not be fetched"
    facts = [f"endpoint: {hub.host}", f"revision: {revision}"]
    for cause in causes(error):
        status = getattr(getattr(cause, "response", None), "status_code", None)
        if status is not None:
            code = cause.response.headers.get("X-Error-Code", "")  # type: ignore[attr-defined]
            reason, hint = _refused(status, code, repository, revision, hub)
            return StepError(f"{what}: {reason}", [*facts, f"status: {status}{f' ({code})' if code else ''}"], hint)
    reason, hint = _broken([name for cause in causes(error) for name in _names(cause)], hub)
    root = list(causes(error))[-1]
    message = " ".join(str(root).split()) or type(error).__name__
    return StepError(f"{what}: {reason}", [*facts, hub.redacted(f"{type(root).__name__}: {message}"[:300])], hint)


def offline(target: str, hub: Hub, missing: str) -> StepError:
    """Return the error about a file or commit that the hub's cache lacks while HF_HUB_OFFLINE forbids a download."""
    return StepError(
        f"{target} could not be fetched: HF_HUB_OFFLINE is set, and the cache lacks {missing}",
        [f"endpoint: {hub.host}, not asked", f"cache: {hub.cache}"],
        f"unset HF_HUB_OFFLINE, or fill the cache with `hf download` where there is a network, or {LOCAL}",
    )


def _refused(status: int, code: str, repository: str, revision: str, hub: Hub) -> tuple[str, str]:
    """Return two texts: the meaning of an HTTP status with which the hub answered, and a hint."""
    page = f"{hub.host}/{repository}"
    if code == "RevisionNotFound":
        hint = f"write one of the branches, tags or commits at {page} as `revision:`"
        return f"{repository} has no revision {revision}", hint
    if code == "EntryNotFound":
        return "the file is not there any more", "build again with --refresh"
    if code == "GatedRepo" or status == HTTPStatus.FORBIDDEN:
        account = "the account of HF_TOKEN" if hub.token else "an account, set HF_TOKEN to a token of it"
        reason = "the model is gated" if code == "GatedRepo" else "access is refused"
        return reason, f"accept its licence at {page} with {account}, or {LOCAL}"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND}:
        unseen = "HF_TOKEN may not see it" if hub.token else "it is private and HF_TOKEN is not set"
        return (
            f"there is no {repository}, or {unseen}",
            f"look for a typing error in it and in HF_ENDPOINT; set HF_TOKEN; or {LOCAL}",
        )
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "the hub limits how often it may be asked", f"wait some minutes, or set HF_TOKEN, or {LOCAL}"
    return "the hub is in trouble", f"try again later, set HF_ENDPOINT to a mirror, or {LOCAL}"


def _broken(names: list[str], hub: Hub) -> tuple[str, str]:
    """Return the meaning of a failure without HTTP status, by the names of exception classes, and a hint, as texts."""
    network = f"check the network, HF_ENDPOINT and the proxy settings, or {LOCAL}"
    page = f"a proxy's page, or a wrong HF_ENDPOINT? open {hub.host} in a browser, or {LOCAL}"
    again = f"build again: complete files are kept; or {LOCAL}"
    # The order matters: most of these classes are also connection errors or OSErrors.
    meanings = (
        ({"ProxyError"}, f"the proxy does not let us through to {hub.host}", network),
        ({"TimeoutException", "TimeoutError"}, f"{hub.host} does not answer in time", network),
        ({"RemoteProtocolError", "ReadError", "TooManyCuts"}, "the connection was cut off again and again", again),
        ({"ConnectError", "NetworkError"}, f"{hub.host} cannot be reached", network),
        ({"UnsupportedProtocol", "InvalidURL"}, "HF_ENDPOINT is no address", "write it as https://host"),
        ({"FileMetadataError", "JSONDecodeError", "NotTheHub"}, f"what answers at {hub.host} is not the hub", page),
        ({"OSError"}, "the file could not be written whole", f"check the free space in {hub.cache} and build again"),
    )
    unknown = ("the hub's client failed", network)
    return next(((reason, hint) for kinds, reason, hint in meanings if not kinds.isdisjoint(names)), unknown)


def _names(error: BaseException) -> list[str]:
    """Return the names of an exception's class and base classes, because names rarely change between versions."""
    return [cls.__name__ for cls in type(error).__mro__]
