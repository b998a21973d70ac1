"""The files and folders of a store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.digest import Digest
from engine.errors import StoreError
from engine.store import file_lock
from engine.store.disk import replace
from engine.store.notes import KINDS
from engine.store.sealed import sealed, unsealed
from engine.system import generated, regular

FORMAT = 2
"""The version number of the store's layout on disk."""


@dataclass(frozen=True)
class Layout:
    """The paths of all folders and files in the store at `root`."""

    root: Path

    @cached_property
    def artifacts(self) -> Path:
        """The folder of artifacts; each artifact is a subfolder that has the digest of its content as its name."""
        return self.root / "artifacts"

    @cached_property
    def files(self) -> Path:
        """The pool: every stored file once, at `<two digits>/<digest>`.

        The files in artifacts are hard links to the files of the pool.
        """
        return self.root / "files"

    @cached_property
    def records(self) -> Path:
        """The folder of records. Each record is a file `<digest of the key>.json`."""
        return self.root / "records"

    @cached_property
    def logs(self) -> Path:
        """Logs of jobs, a file `<digest of the key>.log` for each."""
        return self.root / "logs"

    @cached_property
    def traces(self) -> Path:
        """What jobs read: a file `<digest of its content>.json` for each trace, which records name."""
        return self.root / "traces"

    @cached_property
    def staging(self) -> Path:
        """The unfinished work of builders, a folder for each builder."""
        return self.root / "staging"

    @cached_property
    def locks(self) -> Path:
        """The folder of the store that holds the lock files of builders."""
        return self.root / "locks"

    @cached_property
    def gate(self) -> Path:
        """The lock of the whole store: builders share the lock, and a collection holds the lock alone."""
        return self.locks / "gate"

    @cached_property
    def kept(self) -> Path:
        """Files that save time and never change a result, such as timing caches (`engine.store.kept`)."""
        return self.root / "kept"

    @cached_property
    def envelopes(self) -> Path:
        """The signed statements of records that came from a remote or went there (`engine.store.envelopes`)."""
        return self.root / "envelopes"

    @cached_property
    def incoming(self) -> Path:
        """Unfinished files of downloads: `<SHA-256 of the file>.part`."""
        return self.root / "incoming"

    @cached_property
    def quarantine(self) -> Path:
        """The folder of damaged files and folders, which no build reads."""
        return self.root / "quarantine"

    @cached_property
    def snapshots(self) -> Path:
        """The folder of snapshots, which answer builds in which nothing changed (`engine.snapshot`)."""
        return self.root / "snapshots"

    @cached_property
    def plans(self) -> Path:
        """The folder of plan caches, one for each snapshot, under the snapshot's name (`engine.builder.plan_cache`)."""
        return self.root / "plans"

    @cached_property
    def stamp(self) -> Path:
        """The file with the version of the store's layout."""
        return self.root / "format"

    def pooled(self, content: Digest) -> Path:
        """Return the path in the pool of the file whose content has the digest `content`."""
        return self.files / content[:2] / content


def prepare(layout: Layout) -> None:
    """Make the folders of a store and the file with the version of the layout.

    Raises OSError, and StoreError if the version of the store's layout is not the version of this program.
    """
    folders = (
        layout.artifacts,
        layout.files,
        layout.records,
        layout.logs,
        layout.staging,
        layout.locks,
        layout.snapshots,
        layout.plans,
    )
    generated.make(layout.root)
    for folder in (*folders, *(layout.root / kind for kind in KINDS)):
        folder.mkdir(parents=True, exist_ok=True)
    stamp = sealed({"format": FORMAT})
    try:
        content = regular.read(layout.stamp)
    except FileNotFoundError:
        content = b""
    if content == stamp:
        return
    number = _number(content)
    if number not in (None, FORMAT):
        raise StoreError(
            f"the store at {layout.root} has format {number}, and this version reads format {FORMAT}",
            ["nothing in it was touched"],
            "name another folder with --cache, or move this one away",
        )
    with file_lock.hold(layout.gate, shared=True):
        replace(layout.stamp, stamp, fresh=layout.staging / f"format-{os.urandom(8).hex()}")


def is_stamped(root: Path) -> bool:
    """Say whether the file with the layout's version exists in the store at `root` and is undamaged."""
    try:
        return regular.read(Layout(root).stamp) == sealed({"format": FORMAT})
    except OSError:
        return False


def _number(stamp: bytes) -> int | None:
    """Return the layout version in the bytes of a store's version file; None for a missing or damaged file."""
    try:
        return int(unsealed(stamp)["format"])
    except (ValueError, KeyError, TypeError):
        pass
    # The first version of the layout wrote the number without a seal.
    return int(stamp) if stamp.strip().isdigit() else None
