"""The cache folder of the user: what holds for all stores on this machine, as notes and as large blobs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from engine.store import disk
from engine.store.notes import Notes
from engine.store.sealed import sealed_bytes, unsealed_bytes
from engine.system import regular

MOST_NOTES = 512
"""The largest number of notes of a kind; the notes that were written longest ago are removed."""
MOST_BYTES = 2 << 30
"""The bytes that all blobs of one kind may take; the blobs that were used longest ago are removed."""


def folder() -> Path:
    """Return the user's cache folder for this program: `recipe` in XDG_CACHE_HOME, which is `~/.cache` by default."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.path.abspath(base)) / "recipe"


def notes() -> Notes:
    """Return the notes of the user, with which a fresh store of another project or of a CI job begins."""
    return Notes(folder(), lambda path, data: _write(path, data, most=MOST_NOTES, share=lambda _: 1))


def read_blob(kind: str, name: str) -> memoryview | None:
    """Return a blob. Return None for a blob that is missing, damaged or was written under another name."""
    path = folder() / kind / name
    try:
        content = unsealed_bytes(regular.read(path), f"{kind}/{name}")
        os.utime(path)
    except (OSError, ValueError):
        return None
    return content


def keep_blob(kind: str, name: str, content: bytes) -> None:
    """Write a blob. Do nothing where the folder cannot be written, or the blob is larger than `MOST_BYTES`."""
    if len(content) <= MOST_BYTES:
        sealed = sealed_bytes(content, f"{kind}/{name}")
        with contextlib.suppress(OSError):
            _write(folder() / kind / name, sealed, most=MOST_BYTES, share=lambda status: status.st_size)


def drop_blob(kind: str, name: str) -> None:
    """Remove a blob."""
    with contextlib.suppress(OSError):
        (folder() / kind / name).unlink(missing_ok=True)


def _write(path: Path, data: bytes, *, most: int, share: Callable[[os.stat_result], int]) -> None:
    """Replace a file in one step, and remove the oldest files of its folder until the shares of the others fit `most`.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.replace(path, data, fresh=path.with_name(f"{path.name}.{os.getpid()}"))
    with os.scandir(path.parent) as entries:
        newest_first = sorted(((entry.stat(), entry.path) for entry in entries), key=lambda one: -one[0].st_mtime_ns)
    total = 0
    for status, entry in newest_first:
        total += share(status)
        if total > most:
            with contextlib.suppress(OSError):
                os.unlink(entry)
