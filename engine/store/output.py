"""The output of a job: made read-only and flushed, with the digest of each file, and bound to the job's key."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.errors import StepError
from engine.store.disk import flush

_PERMISSIONS, READ_ONLY = 0o777, 0o444
"""Two file modes: the mask of all permission bits, and read permission for everybody."""
Files = Mapping[str, tuple[int, Digest]]
"""A mapping from a file's relative path to the file's size in bytes and the digest of its content."""


def take(folder: Path, *, flushes: bool = True) -> Files:
    """Make the output files of a job read-only, flush them to the disk, and return their sizes and digests.

    With `flushes=False`, the system writes them when it likes: after a power cut, a file may lack its content. Raises
    OSError for files that cannot be read, and StepError for links and devices.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise StepError("a step left no folder as its output", hint="steps write files below the folder they get")
    return {name: _taken(folder / name, flushes=flushes) for name in digest.walk(folder)}


def tree(files: Files) -> Digest:
    """Return the digest of an artifact that consists of `files`."""
    return digest.of_tree({name: content for name, (_, content) in files.items()})


def binding(*, step: str, key: str, tree: Digest, report: Mapping[str, object]) -> Digest:
    """Return the digest that binds an output, whose files have the digest `tree`, and a report to a job.

    The process that read the output computes it for the step and the key of the job that they answer.
    """
    rows = [("step", step), ("key", key), ("output", tree), ("report", json.dumps(report, sort_keys=True))]
    return digest.of_rows(rows)


def _taken(path: Path, *, flushes: bool) -> tuple[int, Digest]:
    if path.is_symlink() or not path.is_file():
        raise StepError(
            f"a step left {path.name!r} in its output, which is no plain file", hint="steps write plain files only"
        )
    status = path.stat()
    if status.st_nlink == 1:  # a file with several names is a stored input that the step hands on
        if stat.S_IMODE(status.st_mode) & _PERMISSIONS != READ_ONLY:
            os.chmod(path, READ_ONLY)
        if flushes:
            flush(path)
    return status.st_size, digest.of_file(path)
