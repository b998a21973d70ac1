"""Small JSON files that know whether they are whole: fields -> bytes with a seal, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine import digest

_HEAD = b'{"seal": "'
_DIGITS = 32


def sealed(fields: Mapping[str, object], place: str = "") -> bytes:
    """Return `fields` as a line of JSON that begins with the digest of the rest. Raises ValueError, TypeError.

    The seal is for this `place`: anywhere else it does not fit.
    """
    text = json.dumps(fields, sort_keys=True, allow_nan=False)
    rest = f'", {text[1:]}\n'.encode() if fields else b'"}\n'
    return _HEAD + digest.of_bytes(place.encode() + rest).encode() + rest


def unsealed(raw: bytes, place: str = "") -> dict[str, Any]:
    """Return the fields; raises ValueError where as much as one bit is not as it was written for this place."""
    start = len(_HEAD) + _DIGITS
    if raw[: len(_HEAD)] != _HEAD or raw[len(_HEAD) : start] != digest.of_bytes(place.encode() + raw[start:]).encode():
        raise ValueError("the seal does not fit")
    fields: dict[str, Any] = json.loads(raw)
    del fields["seal"]
    return fields
