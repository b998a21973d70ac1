"""Reads: the files, packages and other things that a job used, as a worker records them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

FILE_NAME = "reads"
"""The name of the file beside a job's log in which the worker leaves the reads of the job."""


class Kind(StrEnum):
    """The kind of thing that a job read."""

    FILE = "file"
    FOLDER = "folder"
    """The list of names in a folder."""
    STATUS = "status"
    """Whether a path exists, and what is there: the step asked without reading a content."""
    PACKAGE = "package"
    """Files of an installed Python package. The name of the read is the package's folder or file in site-packages."""
    MACHINE = "machine"
    """A property of the machine, such as the number of CPUs."""
    PROGRAM = "program"
    NETWORK = "network"


@dataclass(frozen=True)
class Read:
    """One thing that a job read."""

    kind: Kind
    name: str
    """The absolute path of a file, folder or package; the name of anything else."""
    at: str = ""
    """The file and line of the step's own code that caused the read; empty for a read by native code."""
    by: str = ""
    """The module whose code did the read, not counting the standard library."""


@dataclass(frozen=True)
class Reads:
    """What a job read, and the folder or file of the Python package that contains the job's step."""

    root: str
    items: tuple[Read, ...]


def encode(root: str, items: Iterable[Read]) -> bytes:
    """Return reads as lines of JSON, below a line with the folder or file of the package that contains the step."""
    rows = ([root], *([read.kind, read.name, read.at, read.by] for read in items))
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def decode(raw: bytes) -> Reads:
    """Return the reads in lines of JSON. Raises ValueError for other bytes."""
    try:
        first, *lines = raw.splitlines()
        (root,) = json.loads(first)
        return Reads(root, tuple(read for read in map(_read_of, lines) if read is not None))
    except (TypeError, AttributeError) as error:
        raise ValueError("these are no reads") from error


@lru_cache(maxsize=4096)
def _read_of(line: bytes) -> Read | None:
    """Return the read of a line; None for the first line of a file. The jobs of a step mostly read the same."""
    kind, *others = json.loads(line)
    return Read(Kind(kind), *others) if others else None
