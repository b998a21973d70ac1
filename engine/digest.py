"""Bytes, files and trees -> Digest (xxh3_128)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NewType

import xxhash

Digest = NewType("Digest", str)
"""128 bits of anything, as 32 lowercase hexadecimal digits."""

_CHUNK = 1 << 20


def of_bytes(data: bytes) -> Digest:
    """Return the digest of `data`."""
    return Digest(xxhash.xxh3_128_hexdigest(data))


def of_file(path: Path) -> Digest:
    """Return the digest of a file's content, streamed in chunks of 1 MiB. Raises OSError."""
    state = xxhash.xxh3_128()
    buffer = bytearray(_CHUNK)
    view = memoryview(buffer)
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            state.update(view[:count])
    return Digest(state.hexdigest())


def of_rows(rows: Iterable[tuple[str, str]]) -> Digest:
    """Return the digest of ordered (name, value) pairs.

    Every string is prefixed by its length in bytes, so that no two different lists of pairs
    give the same input to the digest by concatenation.
    """
    state = xxhash.xxh3_128(b"rows/1")
    for row in rows:
        for text in row:
            raw = text.encode("utf-8", "surrogateescape")
            state.update(len(raw).to_bytes(8, "little"))
            state.update(raw)
    return Digest(state.hexdigest())


def of_tree(files: Mapping[str, Digest]) -> Digest:
    """Return the digest of a directory, given each file's digest by its relative POSIX path."""
    return of_rows(sorted(files.items()))


def walk(root: Path) -> list[str]:
    """Return the relative POSIX paths of all that is no directory under `root`, sorted; links are not followed."""
    found = []
    for folder, folders, names in os.walk(root):
        relative = Path(folder).relative_to(root)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        found += [(relative / name).as_posix() for name in (*names, *links)]
    return sorted(found)
