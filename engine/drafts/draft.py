"""Draft: the fields of a recipe that is about to be written, their comments, and what no field stands for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Unmapped:
    """A setting of another tool that no field of a recipe stands for, and the reason."""

    setting: str
    reason: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.reason}"


@dataclass(frozen=True)
class SampleFile:
    """A file of samples: its name beside the recipe, and its content."""

    name: str
    content: bytes


@dataclass
class Draft:
    """A recipe as nested mappings, with comments by dotted path.

    `about` are the comments at the top, `unmapped` those at the end.
    """

    fields: dict[str, Any]
    about: list[str] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)
    unmapped: list[Unmapped] = field(default_factory=list)
    samples: SampleFile | None = None
    guesses: list[str] = field(default_factory=list)
    """What no file of the model says: `recipe new` prints these lines."""

    def put(self, path: str, value: Any, comment: str = "") -> None:
        """Set the field at a dotted path, and its comment."""
        *parents, last = path.split(".")
        place = self.fields
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
        if comment:
            self.comments[path] = comment

    def leave(self, setting: str, reason: str) -> None:
        """Note a setting of another tool that no field stands for."""
        self.unmapped.append(Unmapped(setting, reason))
