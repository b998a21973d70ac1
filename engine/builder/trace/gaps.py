"""Gaps: reads that no row of a key covers, each with a hint that says how a step declares it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

from engine.builder.trace import call_sites
from engine.builder.trace.call_sites import ENGINE, OURS
from engine.builder.trace.packages import DESCRIBES
from engine.builder.trace.reads import PATHS, Kind, Read
from engine.errors import StepError
from engine.events import Gap
from engine.store.record import Record

FACTS: Mapping[str, str] = {"the number of CPUs": "cpu.count"}
"""The fact that stands for a property of the machine."""
_WORDS: Mapping[str, str] = {Kind.STATUS: "existence or status of"}


class Naming:
    """The names of reads of a job whose step lies in the Python package `root`, a folder or a file."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.folder = root if root.endswith(os.sep) else root and os.path.join(os.path.dirname(root), "")
        """The folder of the step's package; for a module without a package, the folder of the module."""
        self._bases = {ENGINE: _around(ENGINE), self.folder: _around(root)}
        self._home = os.path.expanduser("~") + os.sep

    def portable(self, read: Read) -> str:
        """Return the name of a read: relative to the package of the step, to this program or to the home folder."""
        return self.path(read.name) if read.kind in (*PATHS, Kind.PROGRAM) else read.name

    def path(self, path: str) -> str:
        """Return the portable name of a path."""
        for folder, base in self._bases.items():
            if folder and f"{path}{os.sep}".startswith(folder):
                return path[len(base) :]
        return f"~{os.sep}{path[len(self._home) :]}" if path.startswith(self._home) else path

    def is_own(self, path: str) -> bool:
        """Say whether a file belongs to this program or to the package of the step.

        Data beside a module without a package belongs to it, and another module there is a package of its own.
        """
        real = map(call_sites.without_links, (path, self.folder, self._root))
        return self._is_own(path, self.folder, self._root) or self._is_own(*real)

    @staticmethod
    def _is_own(path: str, folder: str, root: str) -> bool:
        beside = folder != "" and path.startswith(folder) and not path.endswith(".py")
        return beside or path.startswith((ENGINE, root or ENGINE))


def _around(root: str) -> str:
    """Return the folder that contains a package's folder or a module's file."""
    return os.path.join(os.path.dirname(root.removesuffix(os.sep)), "")


def gap_of(read: Read, naming: Naming, package: str) -> Gap:
    """Return a read that no row covers as a gap; `package` is the top-level Python package of the step."""
    at, _, line = read.at.rpartition(":")
    ours = package == OURS
    hint = "this is an error in recipe itself: please report it" if ours else _hint(read, naming)
    place = f"{naming.path(at)}:{line}" if at else ""
    path = os.path.join(read.name, "") if read.kind is Kind.FOLDER else read.name
    fails = read.kind in (Kind.FILE, Kind.FOLDER) and naming.is_own(path)
    return Gap(read.kind.value, naming.portable(read), place, hint, fails=fails)


def gaps_of(record: Record) -> tuple[Gap, ...]:
    """Return what the run that made a record read without a row of its key."""
    return tuple(Gap(**cast("dict[str, Any]", each)) for each in record.gaps)


def sentence(gap: Gap) -> str:
    """Return what a job read without a row of its key, where, and how the step declares it."""
    where = gap.at or ("an import" if gap.kind == Kind.PACKAGE else "native code")
    name = gap.name if gap.kind == Kind.MACHINE else f"the {_WORDS.get(gap.kind, gap.kind)} {gap.name}"
    return f"{where} reads {name}: {gap.hint}"


def refuse_uncovered_code(job: str, gaps: Sequence[Gap]) -> None:
    """Raise StepError if a job has loaded a module, or read a file or folder beside it, that no row has.

    Such a path belongs to this program or to the package of the job's step.
    """
    uncovered = [gap for gap in gaps if gap.fails]
    if uncovered:
        raise StepError(
            f"the step {job!r} uses code or data that its key does not cover",
            [f"{gap.at or 'an import'} uses {gap.name}: {gap.hint}" for gap in uncovered],
            "the result was thrown away: a change of these files would not make it again",
        )


def refuse_gaps(job: str, gaps: Sequence[Gap]) -> None:
    """Raise StepError if a job of a hermetic recipe has read something that no row of its key covers."""
    if gaps:
        raise StepError(
            f"the step {job!r} reads what no row of its key covers, and the recipe is hermetic",
            [sentence(gap) for gap in gaps],
            f"declare it in the step, or leave `hermetic` out of the recipe (recipe why RECIPE {job} --read)",
        )


def _hint(read: Read, naming: Naming) -> str:
    name = naming.portable(read)
    match read.kind:
        case Kind.FILE | Kind.FOLDER | Kind.STATUS:
            hint = _hint_for_path(read, naming)
        case Kind.PACKAGE:
            hint = f'declare it in the step: tools = ("{name.removeprefix(DESCRIBES)}",)'
        case Kind.MACHINE if name in FACTS:
            hint = f'declare it in the step: facts = ("{FACTS[name]}",)'
        case Kind.MACHINE:
            hint = "make it an option of the step"
        case Kind.PROGRAM:
            hint = "declare a fact whose value is the program's version and whose paths name the program"
        case Kind.NETWORK:
            hint = "let a field of the type Source name what is fetched"
    return hint


def _hint_for_path(read: Read, naming: Naming) -> str:
    code = read.at.rpartition(":")[0]
    if read.name.endswith(".py") and read.kind is Kind.FILE:
        inside = naming.path(read.name).removesuffix(".py").removesuffix(f"{os.sep}__init__")
        if not os.path.isabs(inside) and not inside.startswith("~"):
            return f'return "{inside.replace(os.sep, ".")}" from the step\'s method code_used'
    if not os.path.join(read.name, "").startswith(naming.folder) or not code:
        return "let a field of the type Source name it"
    where = os.path.relpath(read.name, os.path.dirname(code))
    return f'declare it in {os.path.basename(code)}: data = ("{where}{"/" if read.kind is Kind.FOLDER else ""}",)'
