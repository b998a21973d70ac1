"""What a verification of a store finds: damage, and how much was read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Damage:
    """A damaged file or folder of the store."""

    path: Path
    why: str
    mended: bool = False
    """Whether the damage is repaired already; if not, the next build that needs the file makes the file again."""


@dataclass
class Verdict:
    """The findings of a verification of the store (`recipe cache verify`)."""

    damages: list[Damage] = field(default_factory=list)
    records: int = 0
    files: int = 0
    bytes: int = 0
    resumed: int = 0
    """The number of files that an earlier, interrupted verification had read already."""
    orphans: int = 0
    """The number of undamaged artifacts and files that no record names, left by killed builds for collection."""
    swept: int = 0
