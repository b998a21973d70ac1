"""Notes of the user: what holds for all stores on this machine, such as the code of installed tools."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from engine.store import disk
from engine.store.notes import Notes

_MOST = 512
"""The largest number of notes of a kind; the notes that were written longest ago are removed."""


def notes() -> Notes:
    """Return the notes in the user's cache folder: `recipe` in XDG_CACHE_HOME, which is `~/.cache` by default.

    A fresh store, for example of another project or of a CI job, begins with these notes.
    """
    return Notes(folder(), _write)


def folder() -> Path:
    """Return the user's cache folder for this program."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.path.abspath(base)) / "recipe"


def _write(path: Path, data: bytes) -> None:
    """Replace a note in one step, and remove the oldest notes if there are too many. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.replace(path, data, fresh=path.with_name(f"{path.name}.{os.getpid()}"))
    with os.scandir(path.parent) as entries:
        oldest = sorted(entries, key=lambda entry: entry.stat().st_mtime_ns)[:-_MOST]
    for entry in oldest:
        with contextlib.suppress(OSError):
            os.unlink(entry.path)
