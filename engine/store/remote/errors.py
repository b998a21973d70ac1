"""Errors of a remote."""

from __future__ import annotations

from engine.errors import StoreError


class RemoteError(StoreError):
    """A remote cannot be reached, is too slow, or answers with an error. A later attempt may succeed."""


class MissingError(RemoteError):
    """The remote has no object of this name."""


class DeniedError(RemoteError):
    """The remote refuses the credentials, or cannot do what is asked. A further attempt is useless."""


class RefusedError(RemoteError):
    """An object of the remote is not what its record or its signature promises; `kind` names the reason in a count."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind
