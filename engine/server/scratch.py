"""Scratch folders: each server has a folder, locked while the server runs; the folders of dead servers are removed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.server import keeper
from engine.store import disk, file_lock
from engine.store.file_lock import FileLock

_LOCK = "lock"


@dataclass(frozen=True)
class Scratch:
    """The folder of a server, and its lock, which a living server holds by the open file that it inherits."""

    folder: Path
    lock: FileLock

    @property
    def name(self) -> str:
        """The name of the server, which no other server has."""
        return f"recipe_{self.folder.name}"

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Write what the keeper starts and cleans up; if it is killed, a later process cleans up by this file."""
        disk.replace(self.folder / keeper.PLAN, json.dumps(plan).encode(), fresh=self.folder / "fresh")

    def drop(self) -> None:
        """Remove the server's folder, and release the lock of the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.lock.release()


def new() -> Scratch:
    """Return a folder for a new server, after cleaning up after dead ones. Raises StepError where none can be made."""
    root = _root()
    with file_lock.hold(root / _LOCK):
        _sweep(root)
        folder = root / secrets.token_hex(6)
        folder.mkdir(mode=0o700)
        return Scratch(folder, file_lock.take(folder / _LOCK))


def sweep() -> int:
    """Clean up after the dead servers of this user; return how many there were."""
    root = _root()
    with file_lock.hold(root / _LOCK):
        return _sweep(root)


def _sweep(root: Path) -> int:
    if not file_lock.are_supported(root):
        return 0  # without file locks, dead and living servers look the same
    dead = [folder for folder in root.iterdir() if folder.is_dir() and not _lives(folder)]
    for folder in dead:
        try:
            plan = json.loads((folder / keeper.PLAN).read_text("utf-8"))
        except (OSError, ValueError):
            plan = None  # the process died before it started a server
        if plan is not None:
            keeper.clear(plan)
        shutil.rmtree(folder, ignore_errors=True)
    return len(dead)


def _lives(folder: Path) -> bool:
    try:
        return file_lock.is_locked(folder / _LOCK)
    except OSError:
        return False


def _root() -> Path:
    """Return the folder of this user's servers, to which no other user can write. Raises StepError for a wrong one."""
    root = Path(tempfile.gettempdir()) / f"recipe-servers-{os.getuid()}"
    try:
        root.mkdir(mode=0o700, exist_ok=True)
        stat_row = root.lstat()
    except OSError as error:
        raise StepError(
            f"no folder for a server can be made in {root.parent}: {error.strerror}",
            hint="set TMPDIR to a writable folder",
        ) from error
    if not stat.S_ISDIR(stat_row.st_mode) or stat_row.st_uid != os.getuid():
        raise StepError(f"{root} is not this user's own folder", hint="remove it, or set TMPDIR to another folder")
    return root
