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
    """Files of an installed Python package. The name of the read is that of the distribution (`packages.py`)."""
    MACHINE = "machine"
    """A property of the machine, such as the number of CPUs."""
    PROGRAM = "program"
    NETWORK = "network"


PATHS = (Kind.FILE, Kind.FOLDER, Kind.STATUS)
"""The kinds of reads whose name is a path, until an installed package stands for the path."""


@dataclass(frozen=True)
class Read:
    """One thing that a job read."""

    kind: Kind
    name: str
    """The absolute path of a file or folder; the name of anything else."""
    at: str = ""
    """The file and line of the step's own code that caused the read; empty for a read by native code."""
    by: str = ""
    """The module whose code did the read, not counting the standard library."""


def encode(items: Iterable[Read]) -> bytes:
    """Return reads as lines of JSON."""
    return b"".join(json.dumps([read.kind, read.name, read.at, read.by]).encode() + b"\n" for read in items)


def decode(raw: bytes) -> tuple[Read, ...]:
    """Return the reads in lines of JSON. Raises ValueError for other bytes, also for none."""
    try:
        items = tuple(map(_read_of, raw.splitlines()))
    except (TypeError, AttributeError) as error:
        raise ValueError("these are no reads") from error
    if not items:
        raise ValueError("there are no reads")
    return items


@lru_cache(maxsize=4096)
def _read_of(line: bytes) -> Read:
    """Return the read of a line. The jobs of a step mostly read the same."""
    kind, *others = json.loads(line)
    return Read(Kind(kind), *others)
