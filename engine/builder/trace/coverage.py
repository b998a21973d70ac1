"""Coverage: compare what a job read with the rows of its key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar

from engine.builder.trace import allowed, distributions
from engine.builder.trace.allowed import ReadingCode
from engine.builder.trace.declaring import FACTS, OURS, gap_of
from engine.builder.trace.naming import Naming
from engine.builder.trace.reads import Kind, Read, Reads
from engine.events import Gap
from engine.key import input_row
from engine.known import Known
from engine.plugins import METADATA
from engine.reporting import TypedReport

_MOST_NAMES = 40
"""The greatest number of names in a group of a trace, and the greatest number of gaps in a trace."""
_MOST_COVERS = 10_000
"""The most covers that are kept for the next job with the same rows."""
_ALLOWED = "allowed"
_DATA = "code (data)"
"""How a trace names the files that a module declares as its data, which are a part of the row `code`."""


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


@dataclass(frozen=True)
class Rows:
    """What the rows of a job's key stand for. What takes time to find out is a function, called where it decides."""

    package: str
    """The top-level Python package of the step."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """The folder of each input that another job made, by the name of the input."""
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The files and folders of each source, by the name of the input; () for a source from a hub."""
    code: frozenset[str] = frozenset()
    """The files of the row `code`: modules and declared data."""
    tools: tuple[str, ...] = ()
    installed: Callable[[str], str] = str
    """Returns the name of the distribution that is installed for a tool."""
    facts: Callable[[], Mapping[str, Known]] = dict

    @property
    def without_inputs(self) -> tuple[object, ...]:
        """What decides, beside the inputs, which reads are covered. Facts of one job differ from those of any other."""
        sources = tuple(self.sources.items())
        return (self.package, sources, self.code, tuple(self.tools), self.installed, self.facts)


@dataclass(frozen=True)
class _Cover:
    """What covers a read: a row of the key or a line of the allow-list; and the portable name of the read."""

    row: str
    name: str
    reason: str = ""


@dataclass(frozen=True)
class _ReadCover:
    """What is known about a read, whatever inputs the job has: its cover, if any, and its path without links."""

    cover: _Cover | None
    real: str


@lru_cache(maxsize=16)
def _covers_of(rows: tuple[object, ...], root: str) -> dict[Read, _ReadCover]:
    """Return what is known about the reads of jobs with these rows, inputs aside: such jobs mostly read the same."""
    del rows, root
    return {}


def examine(reads: Iterable[Reads], rows: Rows) -> Trace:
    """Return what a job read, grouped by what covers it. A forked child of the worker has reads of its own."""
    groups: dict[tuple[str, str], set[str]] = {}
    gaps_by_name: dict[tuple[Kind, str], Gap] = {}
    for each in reads:
        naming = Naming(each.root)
        judge = _Judge(rows, naming, _covers_of(rows.without_inputs, each.root))
        for read in each.items:
            cover = judge.cover(read)
            if cover is not None:
                groups.setdefault((cover.row, cover.reason), set()).add(cover.name)
                continue
            name = naming.portable(read)
            known = gaps_by_name.get((read.kind, name))
            if known is None or not known.at:
                gaps_by_name[read.kind, name] = gap_of(read, naming, rows.package)
    gaps = sorted(gaps_by_name.values(), key=lambda gap: (not gap.fails, gap.at == "", gap.kind, gap.name))
    return Trace(
        tuple(
            TraceGroup(row, tuple(sorted(names)[:_MOST_NAMES]), reason, max(0, len(names) - _MOST_NAMES))
            for (row, reason), names in sorted(groups.items())
        ),
        tuple(gaps[:_MOST_NAMES]),
        max(0, len(gaps) - _MOST_NAMES),
    )


class _Judge:
    """Finds for each read of a job what covers it."""

    def __init__(self, rows: Rows, naming: Naming, covers: dict[Read, _ReadCover]) -> None:
        self._rows = rows
        self._naming = naming
        self._covers = covers
        self._by_kind: Mapping[Kind, Callable[[Read], _Cover | None]] = {
            Kind.FILE: self._path,
            Kind.FOLDER: self._path,
            Kind.STATUS: self._status,
            Kind.PACKAGE: self._package,
            Kind.MACHINE: self._machine,
            Kind.PROGRAM: self._program,
            Kind.NETWORK: self._network,
        }

    def cover(self, read: Read) -> _Cover | None:
        """Return what covers a read; None for a gap."""
        is_path = read.kind in (Kind.FILE, Kind.FOLDER, Kind.STATUS)
        if is_path and (own := self._input(read.name)) is not None:
            return own
        general = self._covers.get(read)
        if general is None:
            general = _ReadCover(
                self._by_kind[read.kind](read) or self._allowed(read), os.path.realpath(read.name) if is_path else ""
            )
            if len(self._covers) < _MOST_COVERS:
                self._covers[read] = general
        return (self._input(general.real) if is_path else None) or general.cover

    def _input(self, path: str) -> _Cover | None:
        """Return the row of the input to which a path leads."""
        for name, folder in self._rows.inputs.items():
            if path == folder or path.startswith(folder + os.sep):
                return _Cover(input_row(name), os.path.relpath(path, folder))
        return None

    def _path(self, read: Read) -> _Cover | None:
        return self._path_in_rows(read) or self._path_of_fact(read)

    def _path_in_rows(self, read: Read) -> _Cover | None:
        return self._row_of(read.name, read) or self._row_of(os.path.realpath(read.name), read)

    def _row_of(self, path: str, read: Read) -> _Cover | None:
        """Return the row that covers a path, which is the name of a read or the same without links."""
        for name, files in self._rows.sources.items():
            if path in files:
                return _Cover(input_row(name), os.path.basename(path))
        if path in self._rows.code:
            return _Cover("code" if path.endswith(".py") else _DATA, self._naming.portable(read))
        return None

    def _status(self, read: Read) -> _Cover | None:
        """Return the row of the path, or of a file below it: a folder with a file exists."""
        below = os.path.join(read.name, "")
        files = (file for files in (*self._rows.sources.values(), self._rows.code) for file in files)
        inner = next((file for file in files if file.startswith(below)), None)
        return self._path(read) or (None if inner is None else self._row_of(inner, read))

    def _path_of_fact(self, read: Read) -> _Cover | None:
        facts = (name for name, fact in self._facts.items() if read.name in fact.paths)
        return next((_Cover(f"facts.{name}", self._naming.portable(read)) for name in facts), None)

    def _package(self, read: Read) -> _Cover | None:
        if read.name.endswith(METADATA):
            owner: distributions.Distribution | None = distributions.described_by(read.name)
        elif self._naming.is_shared(read.name):
            return None
        else:
            owner = distributions.owner(read.name)
        if owner is None:
            return None
        tool = self._tool(owner.name, os.path.dirname(read.name))
        return None if tool is None else _Cover(f"tools.{tool}", f"{owner.name} {owner.version}")

    def _tool(self, distribution: str, site: str) -> str | None:
        """Return the tool whose version stands for a distribution: its own, or one that pins its version."""
        for tool in self._rows.tools:
            if distributions.normalized(tool) == distribution:
                return tool
        for installed, tool in self._tools.items():
            if installed == distribution or distribution in distributions.pinned_by(installed, site):
                return tool
        return None

    @cached_property
    def _tools(self) -> Mapping[str, str]:
        return {distributions.normalized(self._rows.installed(tool)): tool for tool in self._rows.tools}

    @cached_property
    def _facts(self) -> Mapping[str, Known]:
        return self._rows.facts()

    def _machine(self, read: Read) -> _Cover | None:
        fact = FACTS.get(read.name)
        return _Cover(f"facts.{fact}", read.name) if fact is not None and fact in self._facts else None

    def _program(self, read: Read) -> _Cover | None:
        return self._path_of_fact(read)

    def _network(self, read: Read) -> _Cover | None:
        hubs = (name for name, files in self._rows.sources.items() if not files)
        return next((_Cover(input_row(name), read.name) for name in hubs), None)

    def _allowed(self, read: Read) -> _Cover | None:
        portable = self._naming.portable(read)
        reason = allowed.reason(self._reader(read), f"{read.kind}:{portable}")
        return None if reason is None else _Cover(_ALLOWED, portable, reason)

    def _reader(self, read: Read) -> ReadingCode:
        package = read.by.partition(".")[0]
        if package == OURS:
            return ReadingCode.RECIPE
        return ReadingCode.STEP if package == self._rows.package else ReadingCode.LIBRARY


def files_of(paths: tuple[Path, ...]) -> tuple[str, ...]:
    """Return paths as texts, each also without links."""
    return tuple(dict.fromkeys(text for path in paths for text in (os.path.abspath(path), os.path.realpath(path))))
