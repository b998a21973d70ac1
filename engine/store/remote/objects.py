"""The objects of a remote: their names, what is known of one, and the errors about them."""

# The version comes first in a name, so that a later layout can lie beside this one.

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from engine.errors import StoreError
from engine.key import Key

VERSION = "v1"
RECORDS = f"{VERSION}/records"
BLOBS = f"{VERSION}/blobs"
MACHINES = f"{VERSION}/machines"
PROBE = f"{VERSION}/probe"
_RECORD = re.compile(rf"{RECORDS}/([0-9a-f]{{2}})/\1[0-9a-f]{{62}}\.json")
_MACHINE = ("facts.", "env.", "inputs.", "tools.")


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


class UntrustedError(RefusedError):
    """A record's signature does not count for this user."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(kind, what)
        self.hint = "whoever reads a record must trust the key that signs it: `recipe cache trust --key KEY`"


@dataclass(frozen=True)
class Entry:
    """An object of a place: its name, its size in bytes, and the time of its last write in seconds since the epoch."""

    name: str
    size: int
    modified: float


def record_name(key: Key) -> str:
    """Return the name of the record of a key: by the SHA-256 of all rows, because other people write there, too."""
    return _named(RECORDS, key)


def is_record_name(name: str) -> bool:
    """Say whether a text is the name of a record."""
    return _RECORD.fullmatch(name) is not None


def list_name(key: Key) -> str:
    """Return the name of the list of records that other machines made for a job with this code and these options."""
    return _named(MACHINES, {row: value for row, value in key.items() if not row.startswith(_MACHINE)})


def _named(folder: str, rows: Key) -> str:
    text = json.dumps(sorted(rows.items()), ensure_ascii=True, separators=(",", ":"))
    name = hashlib.sha256(text.encode()).hexdigest()
    return f"{folder}/{name[:2]}/{name}.json"


def shown(url: str) -> str:
    """Return a URL for messages: without user, password, query and fragment."""
    scheme, colon, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if "@" in authority or ":" in authority:  # a password may have any character
        rest = rest.rpartition("@")[2]
    url = f"{scheme}{colon}{re.split('[?#]', rest, maxsplit=1)[0]}"
    return "".join(each if each.isprintable() else "?" for each in url)
