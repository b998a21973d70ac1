"""Writable folders: whether a file can be made in a folder is tried before the work whose result goes there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from engine.errors import UsageError


def refuse(folder: Path, what: str, hint: str) -> None:
    """Raise UsageError if nothing can be made in a folder or, if it is missing, in the nearest folder above it."""
    nearest = next((path for path in (folder, *folder.absolute().parents) if os.path.lexists(path)), Path("/"))
    if not nearest.is_dir():
        kind = "a link that leads to no folder" if nearest.is_symlink() else "no folder"
        raise UsageError(what, [f"{nearest} is {kind}"], hint)
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".recipe-", dir=nearest))
    except OSError as error:
        raise UsageError(what, [f"nothing can be written to {nearest}: {error.strerror}"], hint) from None
