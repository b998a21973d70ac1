"""Reads: the files, packages, variables and other things that a job used, as a worker records them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from enum import StrEnum

FILE_NAME = "reads"
"""The name of the file beside a job's log in which the worker leaves the reads of the job."""


class Kind(StrEnum):
    """The kind of thing that a job read."""

    FILE = "file"
    FOLDER = "folder"
    """The list of names in a folder."""
    PACKAGE = "package"
    """Files of an installed Python package. The name of the read is the package's folder or file in site-packages."""
    VARIABLE = "variable"
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


def encode(reads: Iterable[Read]) -> bytes:
    """Return reads as lines of JSON."""
    return b"".join(json.dumps(astuple(each)).encode() + b"\n" for each in reads)


def decode(raw: bytes) -> list[Read]:
    """Return the reads in lines of JSON. Raises ValueError for other bytes."""
    lines = (json.loads(line) for line in raw.splitlines())
    try:
        return [Read(Kind(kind), name, at, by) for kind, name, at, by in lines]
    except TypeError as error:
        raise ValueError("these are no reads") from error
