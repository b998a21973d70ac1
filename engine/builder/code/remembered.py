"""Digests of the code of this program's own steps, remembered by the content of all files of this program."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.builder.code import digests, modules
from engine.builder.code.digests import Code
from engine.digest import Digest
from engine.store.notes import Notes
from engine.system import regular

if TYPE_CHECKING:
    from engine.step import Step

KIND = "code"
_COMPILED = "__pycache__"


class RememberedCode:
    """The code of steps, as one build sees it.

    The analysis of a step's code takes long. For a step whose code lies in this program alone, the result depends on
    nothing but the files of this program and the version of Python. The result is therefore kept in the notes of the
    user, under a digest of these files.
    """

    def __init__(self, notes: Notes, *, afresh: bool = False) -> None:
        """If `afresh` is true, the code of each step is analyzed, whatever earlier builds remembered."""
        self._notes = notes
        self._afresh = afresh
        self._codes: dict[str, Code] = {}

    def of_step(self, step: Step) -> Code:
        """Return the digest of the code that a step with its options runs. Raises StepError, OSError."""
        if not _is_ours(step):
            return digests.of_step(step)
        name = " ".join((f"{type(step).__module__}:{type(step).__qualname__}", *step.code_used()))
        known = self._codes.get(name) or self._noted(name)
        if known is None:
            known = digests.of_step(step)
            self._keep(name, known)
        self._codes[name] = known
        return known

    @cached_property
    def _tree(self) -> _Tree | None:
        return None if self._afresh else _tree()

    def _noted(self, name: str) -> Code | None:
        """Return the code of a step from the note about this program's files."""
        if self._tree is None:
            return None
        fields = self._notes.get(KIND, self._tree.digest).get(name)
        return None if fields is None else self._tree.code(fields)

    def _keep(self, name: str, code: Code) -> None:
        """Add the code of a step to the note about this program's files, unless a file has changed meanwhile."""
        before, now = self._tree, _tree()
        if before is None or now is None or before.digest != now.digest:
            return
        if all(file.is_relative_to(now.root) for file in code.files):
            fields = {"digest": code.digest, "files": [str(file.relative_to(now.root)) for file in code.files]}
            self._notes.keep(KIND, now.digest, {**self._notes.get(KIND, now.digest), name: fields})


@dataclass(frozen=True)
class _Tree:
    """All files of this program."""

    root: Path
    digest: Digest
    """A digest of the names and the contents of the files, and of the version of Python."""
    before: Mapping[Path, os.stat_result]
    """The `os.stat` result of each file from before the file was read."""

    def code(self, fields: Mapping[str, Sequence[str]]) -> Code | None:
        """Return the code of a step from its fields in a note; None for fields of another form."""
        try:
            files = tuple(self.root / name for name in fields["files"])
            before = {file: self.before[file] for file in files if file in self.before}
            return Code(Digest(str(fields["digest"])), files, before)
        except (KeyError, TypeError):
            return None


def _tree() -> _Tree | None:
    """Read all files of this program. Returns None if one of them cannot be read."""
    root = _root()
    try:
        names = [name for name in digest.walk(root) if _COMPILED not in name.split("/")]
        before = {root / name: os.stat(root / name) for name in names}
        rows = [(name, digest.of_bytes(regular.read(root / name))) for name in names]
    except OSError:
        return None
    return _Tree(root, digest.of_rows([("python", sys.version), *rows]), before)


def _root() -> Path:
    return Path(__file__).parents[2]


def _is_ours(step: Step) -> bool:
    """Say whether the code of a step lies in this program alone."""
    from engine.step import Step

    classes = (each.__module__ for each in type(step).__mro__ if issubclass(each, Step))
    return all(map(modules.is_ours, (*classes, *step.code_used())))
