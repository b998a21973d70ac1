"""Coverage: compare what a job read with the rows of its key."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.builder.code import modules
from engine.builder.trace import declaring, distributions
from engine.builder.trace.allowed import ALLOWED, Reader
from engine.builder.trace.places import PYTHON
from engine.builder.trace.reads import Kind, Read
from engine.builder.trace.report import Trace, TraceGroup
from engine.events import Gap
from engine.known import Known

_MOST_NAMES = 40
"""The greatest number of names in a group of a trace, and the greatest number of gaps in a trace."""
_ALLOWED = "allowed"
_DATA = "code (data)"
"""How a trace names the files that a module declares as its data, which are a part of the row `code`."""


@dataclass(frozen=True)
class Rows:
    """What the rows of a job's key stand for."""

    module: str
    """The module of the step."""
    inputs: Mapping[str, str]
    """The folder of each input that another job made, by the name of the input."""
    sources: Mapping[str, tuple[str, ...]]
    """The files and folders of each source, by the name of the input; () for a source from a hub."""
    code: frozenset[str]
    """The files of the row `code`: modules and declared data."""
    tools: Mapping[str, str]
    """The name of the installed distribution for each row `tools.*`."""
    facts: Mapping[str, Known]
    variables: frozenset[str]


@dataclass(frozen=True)
class _Cover:
    """What covers a read: a row of the key or a line of the allow-list; and the portable name of the read."""

    row: str
    name: str
    reason: str = ""


def examine(reads: Iterable[Read], rows: Rows) -> Trace:
    """Return what a job read, grouped by what covers it."""
    judge = _Judge(rows)
    groups: dict[tuple[str, str], set[str]] = {}
    gaps_by_name: dict[tuple[Kind, str], Gap] = {}
    for read in reads:
        cover = judge.cover(read)
        if cover is not None:
            groups.setdefault((cover.row, cover.reason), set()).add(cover.name)
            continue
        name = judge.portable(read)
        known = gaps_by_name.get((read.kind, name))
        if known is None or not known.at:
            gaps_by_name[read.kind, name] = declaring.gap(read, rows.module, name)
    gaps = sorted(gaps_by_name.values(), key=lambda gap: (gap.at == "", gap.kind, gap.name))
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

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._ours = modules.is_ours(rows.module)
        self._folder = _folder_of(modules.package_of(rows.module))
        self._engine = _folder_of(modules.OURS)
        self._home = os.path.expanduser("~")
        self._by_distribution = {distributions.normalized(name): tool for tool, name in rows.tools.items()}
        self._by_kind: Mapping[Kind, Callable[[Read], _Cover | None]] = {
            Kind.FILE: self._path,
            Kind.FOLDER: self._path,
            Kind.PACKAGE: self._package,
            Kind.VARIABLE: self._variable,
            Kind.MACHINE: self._machine,
            Kind.PROGRAM: self._program,
            Kind.NETWORK: self._network,
        }

    def cover(self, read: Read) -> _Cover | None:
        """Return what covers a read; None for a gap."""
        cover = self._by_kind[read.kind](read)
        return self._allowed(read) if cover is None and not self._must_count(read) else cover

    def portable(self, read: Read) -> str:
        """Return the name of a read without the folders of this machine, as far as possible."""
        if read.kind is Kind.PACKAGE:
            return _package_name(read.name)
        if read.kind not in (Kind.FILE, Kind.FOLDER, Kind.PROGRAM):
            return read.name
        for folder in (self._folder, self._engine):
            if folder and read.name.startswith(folder + os.sep):
                return os.path.relpath(read.name, os.path.dirname(folder))
        if read.name.startswith(self._home + os.sep):
            return f"~{read.name[len(self._home) :]}"
        return read.name

    def _path(self, read: Read) -> _Cover | None:
        for path in dict.fromkeys((read.name, os.path.realpath(read.name))):
            for name, folder in self._rows.inputs.items():
                if path == folder or path.startswith(folder + os.sep):
                    return _Cover(f"inputs.{name}", os.path.relpath(path, folder))
            for name, files in self._rows.sources.items():
                if path in files:
                    return _Cover(f"inputs.{name}", os.path.basename(path))
            if path in self._rows.code:
                return _Cover("code" if path.endswith(".py") else _DATA, self.portable(read))
            for name, fact in self._rows.facts.items():
                if path in fact.paths:
                    return _Cover(f"facts.{name}", self.portable(read))
        return None

    def _package(self, read: Read) -> _Cover | None:
        if _is_shared(read.name):
            return None
        owner = distributions.owner(read.name)
        if owner is None:
            return None
        names = {owner.name, *self._pinning(owner.name, os.path.dirname(read.name))}
        tool = next((self._by_distribution[name] for name in names if name in self._by_distribution), None)
        return None if tool is None else _Cover(f"tools.{tool}", f"{owner.name} {owner.version}")

    def _pinning(self, name: str, site: str) -> Iterator[str]:
        """Yield the tools that require a distribution in one exact version."""
        for tool in self._by_distribution:
            if name in distributions.pinned_by(tool, site):
                yield tool

    def _variable(self, read: Read) -> _Cover | None:
        if read.name in self._rows.variables:
            return _Cover(f"env.{read.name}", read.name)
        facts = (name for name, fact in self._rows.facts.items() if read.name in fact.variables)
        return next((_Cover(f"facts.{name}", read.name) for name in facts), None)

    def _machine(self, read: Read) -> _Cover | None:
        fact = declaring.FACTS.get(read.name)
        return _Cover(f"facts.{fact}", read.name) if fact is not None and fact in self._rows.facts else None

    def _program(self, read: Read) -> _Cover | None:
        facts = (name for name, fact in self._rows.facts.items() if read.name in fact.paths)
        return next((_Cover(f"facts.{name}", self.portable(read)) for name in facts), None)

    def _network(self, read: Read) -> _Cover | None:
        hubs = (name for name, files in self._rows.sources.items() if not files)
        return next((_Cover(f"inputs.{name}", read.name) for name in hubs), None)

    def _allowed(self, read: Read) -> _Cover | None:
        name = f"{read.kind}:{self.portable(read)}"
        readers = self._readers(read)
        for line in ALLOWED:
            if line.reader in readers and line.covers(name):
                return _Cover(_ALLOWED, self.portable(read), line.reason)
        return None

    def _must_count(self, read: Read) -> bool:
        """Say whether a read is a module that does the work of the step, imported by code of the row `code`.

        What modules outside the row import, such as those that read recipes, does no work of the step either. The
        `__init__.py` of a package hands on names: of the modules that it imports, the row has those that are used.
        """
        importer = modules.file_of(read.by) if modules.is_ours(read.by) else None
        return (
            read.kind is Kind.FILE
            and read.name.startswith(self._engine + os.sep)
            and (importer is None or (importer.name != "__init__.py" and str(importer) in self._rows.code))
            and modules.counts(_module_name(read.name, self._engine), self._rows.module)
        )

    def _readers(self, read: Read) -> tuple[Reader, ...]:
        """Return as whom the code that did a read counts."""
        package = modules.package_of(read.by)
        if package == modules.OURS:
            return (Reader.ANYONE, Reader.RECIPE, Reader.LIBRARIES)
        if package == modules.package_of(self._rows.module):
            return (Reader.ANYONE,)
        return (Reader.ANYONE, Reader.LIBRARIES)


def _folder_of(package: str) -> str:
    """Return the folder of a top-level package; for a module of one file the empty text."""
    file = modules.file_of(package)
    return str(file.parent) if file is not None and file.name == "__init__.py" else ""


def _module_name(file: str, package: str) -> str:
    """Return the name of the module in a file below the folder of a top-level package."""
    inside = os.path.relpath(file, os.path.dirname(package)).removesuffix(".py").removesuffix(f"{os.sep}__init__")
    return inside.replace(os.sep, ".")


def _is_shared(package: str) -> bool:
    """Say whether a path is the standard library, a folder of the import path, or a folder of metadata."""
    return package == PYTHON or package in sys.path or package.endswith((".dist-info", ".egg-info"))


def _package_name(package: str) -> str:
    """Return the name of a package as the allow-list has it: the name of its distribution."""
    if package == PYTHON:
        return "python"
    if package in sys.path:
        return "import path"
    if package.endswith((".dist-info", ".egg-info")):
        return f"metadata of {distributions.described_by(package).name}"
    owner = distributions.owner(package)
    return owner.name if owner is not None else package


def files_of(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return paths as texts, each also without links."""
    return tuple(dict.fromkeys(text for path in paths for text in (os.path.abspath(path), os.path.realpath(path))))
