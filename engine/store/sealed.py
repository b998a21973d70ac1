"""Sealed files of a store: JSON fields or bytes, each with a digest that tells whether the file is whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine import digest
from engine.seal import Seal


def _digest(name: bytes, content: bytes | memoryview) -> bytes:
    return digest.of_bytes(b"".join((name, content))).encode()


_json = json.JSONEncoder(sort_keys=True, allow_nan=False).encode
_BYTES = Seal(_digest, length=digest.LENGTH)
_JSON = Seal(_digest, length=digest.LENGTH, head=b'{"seal": "')
"""A line of JSON whose first field is the digest of all that follows."""


def sealed(fields: Mapping[str, object], name: str = "") -> bytes:
    """Return the fields as a line of JSON that begins with the digest of what follows. Raises ValueError, TypeError.

    The seal also covers `name`, the name of the file that the line is for, so it does not match a renamed file.
    """
    text = _json(fields)
    rest = f'", {text[1:]}\n'.encode() if fields else b'"}\n'
    return _JSON.close(rest, name.encode())


def unsealed(raw: bytes, name: str = "") -> dict[str, Any]:
    """Return the fields of a sealed line. Raises ValueError if it has changed, or was sealed for another `name`."""
    _JSON.open(raw, name.encode())
    fields: dict[str, Any] = json.loads(raw)
    del fields["seal"]
    return fields


def sealed_bytes(content: bytes, name: str = "") -> bytes:
    """Return the digest of the content and of `name`, the name of its file, followed by the content."""
    return _BYTES.close(content, name.encode())


def unsealed_bytes(raw: bytes, name: str = "") -> memoryview:
    """Return the content of sealed bytes. Raises ValueError if it has changed, or was sealed for another `name`."""
    return _BYTES.open(raw, name.encode())
