"""The keys that the user has revoked: records that they signed do not count, also without a remote."""

# The list has keys as texts, and this module reads no more than that: a build without a remote needs no cryptography.

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from engine.system import regular

LIST = "trusted-keys"
"""The name of the user's list of keys, in the user's configuration folder."""
TRUST = "RECIPE_TRUST"
REVOKED = "revoked"
_PREFIX = "ed25519:"
_ID_DIGITS = 16


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's configuration folder for this program: `recipe` in XDG_CONFIG_HOME (default: ~/.config)."""
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(os.path.abspath(base)) / "recipe"


def revoked(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the identifiers of the revoked keys. A list that cannot be read revokes nothing here."""
    words = environ.get(TRUST, "").replace(",", "\n").splitlines()
    try:
        listed = regular.read(folder(environ) / LIST).decode().splitlines()
    except (OSError, ValueError):
        listed = []
    return frozenset(_ids((*words, *listed)))


def id_of(raw: bytes) -> str:
    """Return a key's name in envelopes: the first 16 hexadecimal digits of the SHA-256 of its 32 bytes."""
    return hashlib.sha256(raw).hexdigest()[:_ID_DIGITS]


def _ids(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        state, *rest = line.split() or [""]
        if state == REVOKED and rest and rest[0].startswith(_PREFIX):
            try:
                yield id_of(base64.b64decode(rest[0].removeprefix(_PREFIX), validate=True))
            except (ValueError, binascii.Error):
                continue
