"""Every error a user can meet: what happened, the facts, a hint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the program; `worst` knows which one wins when several apply."""

    OK = 0
    FAILED = 1
    USAGE = 2
    WAITING = 3
    JUDGED = 4
    INTERRUPTED = 130

    @staticmethod
    def worst(codes: Sequence[Exit]) -> Exit:
        """Return the first code of the precedence 130, 2, 1, 4, 3, 0 that occurs in `codes`."""
        order = (Exit.INTERRUPTED, Exit.USAGE, Exit.FAILED, Exit.JUDGED, Exit.WAITING, Exit.OK)
        return next((code for code in order if code in codes), Exit.OK)


class UserError(Exception):
    """Something that the user can mend: what happened, the facts behind it, and a hint.

    `facts` are short lines printed under `what`; `hint` says what to do next.
    """

    exit = Exit.FAILED

    def __init__(self, what: str, facts: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.facts = tuple(facts)
        self.hint = hint

    def fields(self) -> dict[str, object]:
        """Return the error as machines read it."""
        return {"what": self.what, "facts": list(self.facts), "hint": self.hint}

    def __str__(self) -> str:
        lines = [self.what, *(f"  {line}" for fact in self.facts for line in fact.splitlines())]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class StepError(UserError):
    """A step could not do its work (exit 1)."""


class JudgementError(UserError):
    """A measurement misses a bound that the recipe sets (exit 4). The measurement is kept."""

    exit = Exit.JUDGED


class StoreError(UserError):
    """The store cannot be read or written (exit 1)."""


class HardwareError(UserError):
    """What is here is fine, and needs hardware that is not (exit 3)."""

    exit = Exit.WAITING


class UsageError(UserError):
    """The command line asks for something that cannot be (exit 2)."""

    exit = Exit.USAGE


class LockError(UserError):
    """A build asks for its lock, and there is none, or it is not what is here (exit 2)."""

    exit = Exit.USAGE


@dataclass(frozen=True)
class Position:
    """A place in a text file; `line` and `column` count from 1, 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class RecipeError(UserError):
    """The recipe is wrong (exit 2): where, with the offending line shown."""

    exit = Exit.USAGE

    def __init__(
        self,
        what: str,
        facts: Sequence[str] = (),
        hint: str = "",
        *,
        position: Position | None = None,
        source_line: str = "",
    ) -> None:
        super().__init__(what, facts, hint)
        self.position = position
        self.source_line = source_line

    def __str__(self) -> str:
        text = super().__str__()
        if self.position is None:
            return text
        head, *rest = text.split("\n")
        shown = []
        if self.source_line:
            gutter = f"{self.position.line} | "
            caret = " " * (len(gutter) + self.position.column - 1) + "^"
            shown = [gutter + self.source_line, caret]
        return "\n".join([f"{self.position}: {head}", *shown, *rest])
