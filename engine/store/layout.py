"""What lies where in a store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.digest import Digest
from engine.errors import StoreError
from engine.store import file_lock
from engine.store.disk import replace
from engine.store.sealed import sealed, unsealed

FORMAT = 2
"""The version of the layout on disk."""


@dataclass(frozen=True)
class Layout:
    """The folders of the store at `root`."""

    root: Path

    @cached_property
    def artifacts(self) -> Path:
        """`<digest>/`: what jobs made, by content."""
        return self.root / "artifacts"

    @cached_property
    def files(self) -> Path:
        """`<two digits>/<digest>`: every stored file once, under further names in the artifacts."""
        return self.root / "files"

    @cached_property
    def records(self) -> Path:
        """`<digest of the key>.json`: what a job made and how."""
        return self.root / "records"

    @cached_property
    def logs(self) -> Path:
        """`<digest of the key>.log`: what a job said."""
        return self.root / "logs"

    @cached_property
    def staging(self) -> Path:
        """Work in progress, a folder per builder."""
        return self.root / "staging"

    @cached_property
    def locks(self) -> Path:
        """Files to be locked."""
        return self.root / "locks"

    @cached_property
    def gate(self) -> Path:
        """The lock held, shared, by whoever adds to the store, and alone by whoever takes away."""
        return self.locks / "gate"

    @cached_property
    def kept(self) -> Path:
        """What saves jobs work and decides nothing, such as timing caches (`engine.store.kept`)."""
        return self.root / "kept"

    @cached_property
    def quarantine(self) -> Path:
        """What was found damaged."""
        return self.root / "quarantine"

    @cached_property
    def snapshots(self) -> Path:
        """What up-to-date builds answer from (`engine.snapshot`)."""
        return self.root / "snapshots"

    @cached_property
    def stamp(self) -> Path:
        """The file that says which version of the layout this is."""
        return self.root / "format"

    def pooled(self, content: Digest) -> Path:
        """Return where a content lies in `files/`."""
        return self.files / content[:2] / content


def prepare(layout: Layout) -> None:
    """Make the folders that a store has. Raises OSError; StoreError for a store of another version."""
    folders = (
        layout.artifacts,
        layout.files,
        layout.records,
        layout.logs,
        layout.staging,
        layout.locks,
        layout.snapshots,
    )
    for folder in (*folders, layout.root / "heads", layout.root / "stat", layout.root / "resolutions"):
        folder.mkdir(parents=True, exist_ok=True)
    stamp = sealed({"format": FORMAT})
    try:
        found = layout.stamp.read_bytes()
    except FileNotFoundError:
        found = b""
    if found == stamp:
        return
    number = _number(found)
    if number not in (None, FORMAT):
        raise StoreError(
            f"the store at {layout.root} has format {number}, and this version reads format {FORMAT}",
            ["nothing in it was touched"],
            "name another folder with --cache, or move this one away",
        )
    with file_lock.hold(layout.gate, shared=True):
        replace(layout.stamp, stamp, fresh=layout.staging / f"format-{os.urandom(8).hex()}")


def is_stamped(root: Path) -> bool:
    """Say whether the store at `root` has its stamp as it was written."""
    try:
        return Layout(root).stamp.read_bytes() == sealed({"format": FORMAT})
    except OSError:
        return False


def _number(stamp: bytes) -> int | None:
    """Return the version in a stamp; None in one that is missing or damaged: every file tells its own wholeness."""
    try:
        return int(unsealed(stamp)["format"])
    except (ValueError, KeyError, TypeError):
        pass
    # The first version wrote the bare number.
    return int(stamp) if stamp.strip().isdigit() else None
