"""Digests (xxh3_128) of bytes, of files and of directories."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from typing import NewType

import xxhash

from engine.system.regular import open_file

Digest = NewType("Digest", str)
"""A checksum of 128 bits (xxh3), as 32 lowercase hexadecimal digits."""

LENGTH = 32
"""The number of hexadecimal digits of a Digest."""
_length = struct.Struct("<Q").pack
_CHUNK = 1 << 20
"""Bytes that are read from a file at a time."""


def of_bytes(data: bytes) -> Digest:
    """Return the digest of the bytes `data`, a checksum of 128 bits (xxh3) in hexadecimal digits."""
    return Digest(xxhash.xxh3_128_hexdigest(data))


def of_file(path: str | Path) -> Digest:
    """Return the digest of a file's content, which is read in chunks. Raises OSError."""
    with open_file(path) as file:
        return of_open(file)


def of_open(file: FileIO) -> Digest:
    """Return the digest of the content of an open file, from its position on. Raises OSError."""
    state = xxhash.xxh3_128()
    # The buffer is no larger than the file: most files are small, and Python fills a fresh buffer with zeros.
    buffer = bytearray(min(_CHUNK, os.fstat(file.fileno()).st_size + 1))
    view = memoryview(buffer)
    while count := file.readinto(buffer):
        state.update(view[:count])
    return Digest(state.hexdigest())


def of_rows(rows: Iterable[tuple[str, str]]) -> Digest:
    """Return the digest of an ordered list of (name, value) pairs.

    Before it is hashed, every name and value gets its length in bytes as a prefix. Because each string is prefixed by
    its length, two different lists of pairs never give the same bytes.
    """
    parts = [b"rows/1"]
    for name, value in rows:
        first, second = name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")
        parts += (_length(len(first)), first, _length(len(second)), second)
    return of_bytes(b"".join(parts))


def of_tree(files: Mapping[str, Digest]) -> Digest:
    """Return the digest of a directory from the digests of its files by relative POSIX path."""
    return of_rows(sorted(files.items()))


def walk(root: str | Path) -> list[str]:
    """Return the sorted relative POSIX paths of all files and links under `root`; links are not followed."""
    return sorted(entries(root)[0])


def entries(root: str | Path) -> tuple[list[str], list[str]]:
    """Return the relative POSIX paths of all files and links, and of all folders, under `root`."""
    files: list[str] = []
    folders = [""]
    for folder in folders:  # grows meanwhile: folders may be nested deeper than calls of Python
        prefix = f"{folder}/" if folder else ""
        with os.scandir(os.path.join(root, folder)) as listed:
            for entry in listed:
                (folders if entry.is_dir(follow_symlinks=False) else files).append(prefix + entry.name)
    return files, folders[1:]
