"""The trace of a job: what the job read, grouped by the rows of the key that cover it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.events import Gap
from engine.reporting import TypedReport


@dataclass(frozen=True)
class TraceGroup:
    """The reads of a job that one row of its key, or one line of the allow-list, covers."""

    cover: str
    """The row of the key, for example `tools.onnx`, or `allowed`."""
    names: tuple[str, ...]
    """What was read. Files are named relative to what covers them."""
    reason: str = ""
    """Why the reads are allowed without a row."""
    more: int = 0
    """The number of further reads that are not named here."""


@dataclass(frozen=True)
class Trace(TypedReport):
    """What a job read."""

    version: ClassVar[int] = 1

    groups: tuple[TraceGroup, ...]
    gaps: tuple[Gap, ...] = ()
    """What no row of the key covers."""
    more_gaps: int = 0
    """The number of further gaps that are not named here."""
