"""What a job leaves in its folder -> sealed files: read-only, on the disk itself, each with its digest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.errors import StepError
from engine.store.disk import flush

Files = Mapping[str, tuple[int, Digest]]
"""Relative path -> size in bytes and content."""


def take(made: Path) -> Files:
    """Close the output of a job and return its files. Raises StepError for what is no plain file, OSError."""
    if made.is_symlink() or not made.is_dir():
        raise StepError("a step left no folder as its output", hint="steps write files below the folder they get")
    return {name: _taken(made / name) for name in digest.walk(made)}


def tree(files: Files) -> Digest:
    """Return the digest of an artifact that holds these files."""
    return digest.of_tree({name: content for name, (_, content) in files.items()})


def _taken(path: Path) -> tuple[int, Digest]:
    if path.is_symlink() or not path.is_file():
        raise StepError(
            f"a step left {path.name!r} in its output, which is no plain file", hint="steps write plain files only"
        )
    found = path.stat()
    if found.st_nlink == 1:  # a file with several names is an input handed on: stored long ago
        if found.st_mode & 0o777 != 0o444:  # noqa: PLR2004 - read-only for everybody
            os.chmod(path, 0o444)
        flush(path)
    return found.st_size, digest.of_file(path)
