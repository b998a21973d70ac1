"""What a push writes anew, although the remote has it."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.digest import Digest


@dataclass
class Anew:
    """Records and blobs of the remote that could not be used here."""

    keys: set[Digest] = field(default_factory=set)
    """Keys whose artifacts could not be brought: their jobs run again."""
    objects: set[str] = field(default_factory=set)
    """Names of blobs that a download refused."""
