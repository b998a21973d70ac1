"""The files and folders of a store."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from engine.digest import Digest
from engine.errors import StoreError
from engine.store import file_lock
from engine.store.disk import replace
from engine.store.notes import KEPT, KINDS
from engine.store.sealed import sealed, unsealed
from engine.system import folders, regular

FORMAT = 2
"""The version number of the store's layout on disk."""
_STAMP = sealed({"format": FORMAT})


class Layout:
    """The paths of all folders and files in a store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.artifacts = root / "artifacts"
        """The folder of artifacts; each artifact is a subfolder that has the digest of its content as its name."""
        self.files = root / "files"
        """The pool: every stored file once, at `<two digits>/<digest>`.

        The files in artifacts are hard links to the files of the pool.
        """
        self.records = root / "records"
        """The folder of records. Each record is a file `<digest of the key>.json`."""
        self.logs = root / "logs"
        """Logs of jobs, a file `<digest of the key>.log` for each."""
        self.traces = root / "traces"
        """What jobs read: a file `<digest of its content>.json` for each trace, which records name."""
        self.staging = root / "staging"
        """The unfinished work of builders, a folder for each builder."""
        self.locks = root / "locks"
        """The folder of the store that holds the lock files of builders."""
        self.gate = self.locks / "gate"
        """The lock of the whole store: builders share the lock, and a collection holds the lock alone."""
        self.kept = root / KEPT
        """Files that save time and never change a result, such as timing caches (`engine.store.notes`)."""
        self.envelopes = root / "envelopes"
        """The signed statements of records that came from a remote or went there (`engine.store.ledger`)."""
        self.incoming = root / "incoming"
        """Unfinished files of downloads: `<SHA-256 of the file>.part`."""
        self.quarantine = root / "quarantine"
        """The folder of damaged files and folders, which no build reads."""
        self.snapshots = root / "snapshots"
        """The folder of snapshots, which answer builds in which nothing changed (`engine.snapshot`)."""
        self.plans = root / "plans"
        """The folder of plan caches, one for each snapshot, under the snapshot's name (`engine.builder.plan_cache`)."""
        self.stamp = root / "format"
        """The file with the version of the store's layout."""

    def pooled(self, content: Digest) -> Path:
        """Return the path in the pool of the file whose content has the digest `content`."""
        return self.files / content[:2] / content


def prepare(at: Layout) -> None:
    """Make the folders of a store and the file with the version of the layout.

    Raises OSError, and StoreError if the version of the store's layout is not the version of this program.
    """
    folders.make_generated(at.root)
    own = (at.artifacts, at.files, at.records, at.logs, at.staging, at.locks, at.snapshots, at.plans)
    for folder in (*own, *(at.root / kind for kind in KINDS)):
        folder.mkdir(parents=True, exist_ok=True)
    if is_stamped(at):
        return
    number = _number(at.stamp)
    if number not in (None, FORMAT):
        raise StoreError(
            f"the store at {at.root} has format {number}, and this version reads format {FORMAT}",
            ["nothing in it was touched"],
            "name another folder with --cache, or move this one away",
        )
    with file_lock.hold(at.gate, shared=True):
        replace(at.stamp, _STAMP, fresh=at.staging / f"format-{os.urandom(8).hex()}")


def is_stamped(layout: Layout) -> bool:
    """Say whether the file with the layout's version exists and is undamaged."""
    try:
        return regular.read(layout.stamp) == _STAMP
    except OSError:
        return False


def _number(path: Path) -> int | None:
    """Return the layout version in a store's version file; None for a missing or damaged file. Raises OSError."""
    try:
        stamp = regular.read(path)
    except FileNotFoundError:
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return int(unsealed(stamp)["format"])
    # The first version of the layout wrote the number without a seal.
    return int(stamp) if stamp.strip().isdigit() else None
