"""The names of a remote's objects. The version comes first, so that a later layout can lie beside this one."""

from __future__ import annotations

import hashlib
import json
import re

from engine.key import Key
from engine.store.remote.blobs import Blob

VERSION = "v1"
RECORDS = f"{VERSION}/records"
BLOBS = f"{VERSION}/blobs"
MACHINES = f"{VERSION}/machines"
PROBE = f"{VERSION}/probe"
_RECORD = re.compile(rf"{RECORDS}/([0-9a-f]{{2}})/\1[0-9a-f]{{62}}\.json")
_MACHINE = ("facts.", "env.", "inputs.", "tools.")


def record(key: Key) -> str:
    """Return the name of the record of a key: by the SHA-256 of all rows, because other people write there, too."""
    return _named(RECORDS, key)


def is_record(name: str) -> bool:
    """Say whether a text is the name of a record."""
    return _RECORD.fullmatch(name) is not None


def machines(key: Key) -> str:
    """Return the name of the list of records that other machines made for a job with this code and these options."""
    return _named(MACHINES, {row: value for row, value in key.items() if not row.startswith(_MACHINE)})


def blob(blob: Blob) -> str:
    """Return the name of a blob's object."""
    return f"{BLOBS}/{blob.sha256[:2]}/{blob.sha256}{'.zst' if blob.encoding else ''}"


def _named(folder: str, rows: Key) -> str:
    text = json.dumps(sorted(rows.items()), ensure_ascii=True, separators=(",", ":"))
    name = hashlib.sha256(text.encode()).hexdigest()
    return f"{folder}/{name[:2]}/{name}.json"
