"""The files that git tracks below a folder: read from the indexes of the git work trees around the folder."""

# Source of the format: git, Documentation/gitformat-index. Versions 2 to 4, split indexes, SHA-1 and SHA-256 are read.
#
# A no-op build imports this module, so the module imports only what Python has loaded already. The program `git` is not
# called: it may be missing, and it takes longer than the whole build.

from __future__ import annotations

import os

from engine.system import regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ID_BYTES = (20, 32)
"""The lengths of SHA-1 and SHA-256. An index does not say which one it has; names in order tell."""
_HEAD = 12
_STAT_BYTES = 40
_FLAGS_BYTES = 2
_EXTENDED = 0x4000
_PREFIXED = 4
"""The version whose names are written as their difference from the name before."""
_VERSIONS = (2, 3, _PREFIXED)
_LINK = b"link"
"""The extension that names the shared part of a split index."""


def state(folder: str) -> str:
    """Return a text that changes when an index of a work tree around the folder changes; "" outside of work trees."""
    rows = [os.stat(index) for _, index in _indexes(os.path.realpath(folder))]
    return ",".join(f"{row.st_mtime_ns}-{row.st_size}-{row.st_ino}" for row in rows)


def tracked(folder: str) -> list[str]:
    """Return the paths below the folder that git tracks, relative to the folder.

    Raises OSError for an index that cannot be read, and ValueError for one of an unknown format.
    """
    real = os.path.realpath(folder)
    return sorted({os.fsdecode(name) for top, index in _indexes(real) for name in _below(real, top, index)})


def _indexes(real: str) -> Iterator[tuple[str, str]]:
    """Yield each work tree around a folder, from the folder itself upwards, and the path of its index."""
    top = real
    while True:
        git = os.path.join(top, ".git")
        index = os.path.join(git, "index")
        if os.path.isfile(index) or (os.path.isfile(git) and os.path.isfile(index := _linked(top, git))):
            yield top, index
        above = os.path.dirname(top)
        if above == top:
            return
        top = above


def _linked(top: str, git: str) -> str:
    """Return the path of the index where `.git` is a file: in a submodule, and in a further work tree."""
    try:
        text = os.fsdecode(regular.read(git))
    except OSError:
        return ""
    return os.path.join(top, text.removeprefix("gitdir:").strip(), "index")


def _below(real: str, top: str, index: str) -> Iterator[bytes]:
    """Yield the tracked names below the folder `real`, relative to it.

    A file system may pass over upper and lower case; then the file system says whether a folder is the same one.
    """
    inner = os.fsencode(os.path.relpath(real, top))
    start = b"" if inner == b"." else inner + b"/"
    for name in _names(index, start.lower()):
        if name[: len(start)] == start or _is_same(os.path.join(os.fsencode(top), name[: len(start)]), real):
            yield name[len(start) :]


def _is_same(path: bytes, real: str) -> bool:
    try:
        return os.path.samefile(path, real)
    except OSError:
        return False


def _names(index: str, start: bytes) -> list[bytes]:
    """Return the names in an index that begin with `start`, which is in lower case."""
    raw = regular.read(index)
    if raw[:4] != b"DIRC" or _number(raw, 4) not in _VERSIONS:
        raise ValueError(f"{index} has an unknown format")
    if _number(raw, 4) != _PREFIXED and start not in raw.lower() and _LINK not in raw:
        return []  # nearly every index: its names need not be taken apart
    for length in _ID_BYTES:
        try:
            names, end = _entries(raw, length)
            shared = _shared(raw, end, length)
        except (ValueError, IndexError):
            continue
        names = [name for name in names if name.lower().startswith(start)]
        if shared:
            names += _names(os.path.join(os.path.dirname(index), f"sharedindex.{shared}"), start)
        return names
    raise ValueError(f"{index} has an unknown format")


def _entries(raw: bytes, id_bytes: int) -> tuple[list[bytes], int]:
    """Return the names of all entries, and the place behind the entries. Raises ValueError and IndexError."""
    version, count = _number(raw, 4), _number(raw, 8)
    names: list[bytes] = []
    place, name = _HEAD, b""
    for _ in range(count):
        first = place
        place += _STAT_BYTES + id_bytes
        flags = raw[place] << 8 | raw[place + 1]
        place += _FLAGS_BYTES * (2 if flags & _EXTENDED else 1)
        kept = 0
        if version == _PREFIXED:
            cut, place = _offset(raw, place)
            kept = len(name) - cut
        end = raw.index(b"\0", place)
        before, name = name, name[:kept] + raw[place:end]
        if name < before or kept < 0:
            raise ValueError("the names are not in order")
        names.append(name)
        place = end + 1 if version == _PREFIXED else first + (end - first + 8) // 8 * 8
    return names, place


def _offset(raw: bytes, place: int) -> tuple[int, int]:
    """Return a number of variable length, as in pack files, and the place behind it."""
    value = raw[place] & 0x7F
    while raw[place] & 0x80:
        place += 1
        value = (value + 1) << 7 | raw[place] & 0x7F
    return value, place + 1


def _shared(raw: bytes, place: int, id_bytes: int) -> str:
    """Return the digest of the shared part of a split index; "" for a whole index. Raises ValueError."""
    while place < len(raw) - id_bytes:
        if raw[place : place + 4] == _LINK:
            digest = raw[place + 8 : place + 8 + id_bytes]
            return digest.hex() if any(digest) else ""
        place += 8 + _number(raw, place + 4)
    if place != len(raw) - id_bytes:
        raise ValueError("the extensions do not end at the checksum")
    return ""


def _number(raw: bytes, place: int) -> int:
    return int.from_bytes(raw[place : place + 4], "big")
