"""Coverage: compare what a job read with the rows of its key."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from engine.builder.trace import allowed, call_sites, packages
from engine.builder.trace.allowed import ReadingCode
from engine.builder.trace.call_sites import OURS
from engine.builder.trace.gaps import FACTS, Naming, gap_of
from engine.builder.trace.reads import FILE_NAME, PATHS, Kind, Read, decode
from engine.errors import StepError
from engine.events import Gap
from engine.facts import Known
from engine.key import Key, input_row
from engine.reporting import TypedReport
from engine.store.record import Record
from engine.system import regular

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.builder.lookup import Lookup

_MOST_NAMES = 40
"""The greatest number of names in a group of a trace, and the greatest number of gaps in a trace."""
_ALLOWED = "allowed"
_CODE = "code"
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
    root: str = ""
    """The folder or file of the package."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """The folder of each input that another job made, by the name of the input."""
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The absolute paths of each source, by the name of the input; () for a source from a hub."""
    code: tuple[str, ...] = ()
    """The absolute paths of the row `code`: modules and declared data."""
    tools: tuple[str, ...] = ()
    installed: Callable[[str], str] = str
    """Returns the name of the distribution that is installed for a tool."""
    facts: Callable[[], Mapping[str, Known]] = dict


@dataclass(frozen=True)
class _Cover:
    """What covers a read: a row of the key or a line of the allow-list; and the portable name of the read."""

    row: str
    name: str
    reason: str = ""


def examine(reads: Iterable[Read], rows: Rows) -> Trace:
    """Return what a job read, grouped by what covers it."""
    groups: dict[tuple[str, str], set[str]] = {}
    gaps_by_name: dict[tuple[Kind, str], Gap] = {}
    naming = Naming(rows.root)
    judge = _Judge(rows, naming)
    for read in reads:
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

    def __init__(self, rows: Rows, naming: Naming) -> None:
        self._rows = rows
        self._naming = naming
        self._row_of = dict.fromkeys(rows.code, _CODE)
        self._row_of |= {path: input_row(name) for name, paths in rows.sources.items() for path in paths}

    def cover(self, read: Read) -> _Cover | None:
        """Return what covers a read; None for a gap."""
        match read.kind:
            case Kind.FILE | Kind.FOLDER | Kind.STATUS:
                cover = self._path(read) or self._fact_of_path(read)
            case Kind.PROGRAM:
                cover = self._fact_of_path(read)
            case Kind.PACKAGE:
                name = read.name.removeprefix(packages.DESCRIBES)
                tool = self._tools.get(name)
                cover = None if tool is None else _Cover(f"tools.{tool}", name)
            case Kind.MACHINE:
                fact = FACTS.get(read.name)
                cover = _Cover(f"facts.{fact}", read.name) if fact is not None and fact in self._facts else None
            case Kind.NETWORK:
                hubs = (name for name, files in self._rows.sources.items() if not files)
                cover = next((_Cover(input_row(name), read.name) for name in hubs), None)
        return cover or self._allowed(read) or self._without_links(read)

    def _path(self, read: Read) -> _Cover | None:
        """Return the row of a path.

        Where a job asks only for the status of a folder, the row of a file below it says that the folder is there.
        """
        cover = self._of_path(read.name, self._row_of)
        if cover is None and read.kind is Kind.STATUS:
            below = os.path.join(read.name, "")
            inner = next((file for file in self._row_of if file.startswith(below)), None)
            cover = None if inner is None else self._of_path(inner, self._row_of)
        return cover

    def _without_links(self, read: Read) -> _Cover | None:
        """Return the row of the path to which a path leads."""
        return self._of_path(os.path.realpath(read.name), self._row_of_real) if read.kind in PATHS else None

    def _of_path(self, path: str, row_of: Mapping[str, str]) -> _Cover | None:
        for name, folder in self._rows.inputs.items():
            if path == folder or path.startswith(folder + os.sep):
                return _Cover(input_row(name), os.path.relpath(path, folder))
        row = row_of.get(path)
        if row != _CODE:
            return None if row is None else _Cover(row, os.path.basename(path))
        return _Cover(_CODE if path.endswith(".py") else _DATA, self._naming.path(path))

    @cached_property
    def _row_of_real(self) -> Mapping[str, str]:
        return {os.path.realpath(path): row for path, row in self._row_of.items()}

    def _fact_of_path(self, read: Read) -> _Cover | None:
        facts = (name for name, fact in self._facts.items() if read.name in fact.paths)
        return next((_Cover(f"facts.{name}", self._naming.portable(read)) for name in facts), None)

    @cached_property
    def _tools(self) -> Mapping[str, str]:
        """The tool whose version stands for a distribution: its own, or one that pins its version."""
        installed = {tool: self._rows.installed(tool) for tool in self._rows.tools}
        pinned = {each: tool for tool, name in installed.items() for each in packages.pinned_by(name)}
        own = {packages.normalized(name): tool for tool, name in installed.items()}
        return pinned | own | {packages.normalized(tool): tool for tool in self._rows.tools}

    @cached_property
    def _facts(self) -> Mapping[str, Known]:
        return self._rows.facts()

    def _allowed(self, read: Read) -> _Cover | None:
        portable = self._naming.portable(read)
        reason = allowed.reason(self._reader(read), f"{read.kind}:{portable}")
        return None if reason is None else _Cover(_ALLOWED, portable, reason)

    def _reader(self, read: Read) -> ReadingCode:
        package = read.by.partition(".")[0]
        if package == OURS:
            return ReadingCode.RECIPE
        return ReadingCode.STEP if package == self._rows.package else ReadingCode.LIBRARY


_FACT = "facts."
"""The beginning of the names of a key's rows with facts."""


def trace_of_run(lookup: Lookup, job: Job, key: Key, inputs: Mapping[str, Record], folder: Path) -> Trace:
    """Return what a job read, from the files that its worker left in `folder`.

    Raises StepError where the worker left none, or where they are damaged: nobody can say then what the job depends on.
    """
    try:
        files = (folder / FILE_NAME, *folder.glob(f"{FILE_NAME}.*"))
        every = [read for file in files for read in decode(regular.read(file))]
    except (OSError, ValueError) as error:
        raise StepError(
            f"nobody can say what the job {job.name!r} has read",
            [f"the list of its worker cannot be read: {error}"],
            "build again; a step must not write into the folder around `out`",
        ) from error
    return examine(every, _rows(lookup, job, key, inputs))


@lru_cache(maxsize=16)
def encoded_trace(trace: Trace) -> bytes:
    """Return a trace as the bytes that the store keeps. Many jobs of a step have the same trace."""
    return json.dumps({"version": trace.version, **trace.to_json()}, sort_keys=True).encode()


def trace_of_record(lookup: Lookup, record: Record) -> Trace | None:
    """Return the trace of the run that made a record; None for a record without a readable trace."""
    content = lookup.store.trace(record)
    if content is None:
        return None
    raw = json.loads(content)
    try:
        return Trace.from_json(raw, raw.pop("version"))
    except ValueError:
        return None


def _rows(lookup: Lookup, job: Job, key: Key, inputs: Mapping[str, Record]) -> Rows:
    traits = job.traits
    return Rows(
        call_sites.package_of_class(traits.kind),
        root=next(iter(call_sites.roots_of(call_sites.package_of_class(traits.work))), ""),
        inputs={name: str(lookup.store.artifact_path(record.artifact)) for name, record in inputs.items()},
        sources={
            name: tuple(map(os.path.abspath, lookup.source(source).files)) for name, source in traits.sources.items()
        },
        code=tuple(os.path.abspath(path) for path, _ in lookup.rows.code_read(job)),
        tools=traits.tools,
        installed=_installed,
        facts=(lambda: _facts(job, key)) if any(row.startswith(_FACT) for row in key) else dict,
    )


def _installed(tool: str) -> str:
    from engine.machine import tools

    return tools.build(tool).value


def _facts(job: Job, key: Key) -> dict[str, Known]:
    names = [row.removeprefix(_FACT) for row in key if row.startswith(_FACT)]
    from engine.builder import facts

    hardware = job.step.hardware()
    return {name: facts.of(name, hardware) for name in names}
