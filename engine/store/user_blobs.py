"""Blobs of the user: files that take long to compute and change no result, such as compiled models."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from engine.store import disk, user_notes
from engine.store.sealed import sealed_bytes, unsealed_bytes
from engine.system import regular

MOST = 2 << 30
"""The bytes that all blobs of one kind may take; the blobs that were used longest ago are removed."""


def read(kind: str, name: str) -> memoryview | None:
    """Return a blob. Return None for a blob that is missing, damaged or was written under another name."""
    path = _path(kind, name)
    try:
        content = unsealed_bytes(regular.read(path), f"{kind}/{name}")
        os.utime(path)
    except (OSError, ValueError):
        return None
    return content


def keep(kind: str, name: str, content: bytes) -> None:
    """Write a blob. Do nothing where the user's cache folder cannot be written, or the blob is larger than `MOST`."""
    if len(content) > MOST:
        return
    path = _path(kind, name)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace(path, sealed_bytes(content, f"{kind}/{name}"), fresh=path.with_name(f"{path.name}.{os.getpid()}"))
        _shrink(path.parent)


def drop(kind: str, name: str) -> None:
    """Remove a blob."""
    with contextlib.suppress(OSError):
        _path(kind, name).unlink(missing_ok=True)


def _path(kind: str, name: str) -> Path:
    return user_notes.folder() / kind / name


def _shrink(folder: Path) -> None:
    """Remove the blobs that were used longest ago until the others take at most `MOST` bytes. Raises OSError."""
    with os.scandir(folder) as entries:
        newest_first = sorted(((entry.stat(), entry.path) for entry in entries), key=lambda one: -one[0].st_mtime_ns)
    total = 0
    for stat, path in newest_first:
        total += stat.st_size
        if total > MOST:
            with contextlib.suppress(OSError):
                os.unlink(path)
