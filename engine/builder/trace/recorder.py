"""The recorder of a worker process: notes what the present job reads."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

from engine.builder.trace import call_sites, packages
from engine.builder.trace.call_sites import ENGINE, OURS, ReadSite
from engine.builder.trace.reads import FILE_NAME, PATHS, Kind, Read, encode

_MAPPED = re.compile(rb"/.*")


class Recorder:
    """Notes what a job reads, each thing once.

    A worker is forked for one job from a zygote that has imported only what the job's step names. So the imports of the
    zygotes are reads of the job, and nothing else that a zygote does.
    """

    def __init__(self) -> None:
        self._is_noting = False
        self._reads: dict[tuple[Kind, str, str], ReadSite] = {}
        """What was read, by its kind, its name and the package that reads: the allow-list asks who reads."""
        self._imports: dict[str, dict[str, ReadSite]] = {}
        """For each package, the names in its import statements, each with the first statement. Some are functions."""
        self._loaded: set[str] = set()
        """The files of all modules that were loaded, also of those that `sys.modules` lacks."""
        self._packages: set[tuple[Kind, str]] = set()
        self._written: set[str] = set()
        self._folders: tuple[str, ...] = ()
        self._package = ""
        self._roots: tuple[str, ...] = ()
        self._own: tuple[str, ...] = (ENGINE,)
        """Where the files of this program and of the step's package lie, by the import path and without links."""
        self._inputs: tuple[str, ...] = ()
        self._mapped: frozenset[str] = frozenset()
        self._folder = ""
        self._is_copy = False

    def begin(self) -> None:
        """Count the files that Python has mapped until now for no read of a job."""
        self._mapped = _mapped_files()

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """Note what the import of a module reads: it counts for each job of a process that is forked later."""
        self._is_noting = True
        try:
            yield
        finally:
            self._is_noting = False

    @contextlib.contextmanager
    def recording(self, folder: str, package: str, inputs: tuple[str, ...]) -> Iterator[None]:
        """Note what a job reads until the end of the context, and write the reads to a file in the job's folder.

        `package` is the top-level package of the job's step. No file is written for a job that fails, nor by a copy of
        the process that the job has forked.
        """
        self._package, self._roots = package, call_sites.roots_of(package)
        self._own = (ENGINE, *self._roots, *map(call_sites.without_links, self._roots))
        self._inputs, self._folder = inputs, folder
        self._written, self._folders = set(), (folder + os.sep,)
        with self.importing():
            yield
            if not self._is_copy:
                self._write()

    def read(self, kind: Kind, name: str, frame: FrameType | None) -> None:
        """Note that the present job reads something; `frame` is the code that reads."""
        if not self._is_noting:
            return
        readers = call_sites.readers(frame)
        reader = next(readers, None)
        key = (kind, name, "" if reader is None else call_sites.package_of_frame(reader))
        if key not in self._reads:
            site = self._reads[key] = call_sites.site_of(() if reader is None else (reader, *readers))
            if self._is_copy:
                self._forward(self._finished(kind, name, site))

    def read_path(self, path: str, kind: Kind, frame: FrameType | None) -> None:
        """Note that the present job reads a file or folder, unless the job has written it before."""
        path = call_sites.source_of(path)
        if path not in self._written and not f"{path}{os.sep}".startswith(self._folders):
            self.read(kind, path, frame)

    def status(self, path: str, frame: FrameType | None) -> None:
        """Note that the step's own code asks whether a path exists, or what is there. Libraries ask all the time."""
        if self._is_noting and call_sites.asks(frame, self._roots):
            self.read_path(path, Kind.STATUS, frame)

    def code(self, path: str, frame: FrameType | None) -> None:
        """Note that a module's file is loaded. Of the modules of an installed package, the first one is noted."""
        path = call_sites.source_of(path)
        self._loaded.add(path)
        package = self._named(Kind.FILE, path)
        if self._is_noting and package not in self._packages:
            self._packages.add(package)
            self.read_path(path, Kind.FILE, frame)

    def imports(self, names: Sequence[str], frame: FrameType | None) -> None:
        """Note that an import statement names modules, which a library may have loaded before."""
        importer = next(call_sites.readers(frame), None)
        if importer is None:
            return
        of_package = self._imports.setdefault(call_sites.package_of_frame(importer), {})
        for name in names:
            if name not in of_package:
                of_package[name] = call_sites.site_of((importer,))

    def written(self, path: str, *, folder: bool = False) -> None:
        """Note that the present job makes a file or folder, whose content is no read of the job."""
        path = os.path.abspath(path)
        if folder:
            self._folders = (*self._folders, path + os.sep)
        self._written.add(path)

    def in_copy(self) -> None:
        """Go on in a forked process: a copy of a job's process appends its reads to a file of the job."""
        self._is_copy = self._is_noting and self._folder != ""

    def _forward(self, read: Read) -> None:
        path = os.path.join(self._folder, f"{FILE_NAME}.copies")
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(file, encode([read]))
            os.close(file)

    def _write(self) -> None:
        for path in _mapped_files() - self._mapped:
            self.read_path(path, Kind.FILE, None)
        self._is_noting = False
        every = [self._finished(kind, name, site) for (kind, name, _), site in self._reads.items()]
        every += [self._finished(Kind.FILE, file, site) for file, site in self._own_imports()]
        named = {read.name for read in every}
        every += [Read(Kind.FILE, file) for file in sorted(set(self._own_files()) - named)]
        lines: dict[tuple[Kind, str, str], Read] = {}
        for read in every:
            lines.setdefault((read.kind, read.name, read.by.partition(".")[0]), read)
        with open(os.path.join(self._folder, FILE_NAME), "wb") as output:
            output.write(encode(lines.values()))

    def _own_imports(self) -> Iterator[tuple[str, ReadSite]]:
        """Yield the file of each module that the code of the step, or this program, names in an import statement."""
        for package in dict.fromkeys((self._package, OURS)):
            for name, site in self._imports.get(package, {}).items():
                if (file := _file_of(sys.modules.get(name))) is not None:
                    yield call_sites.source_of(file), site

    def _own_files(self) -> Iterator[str]:
        """Yield the files of the step's package and of this program that are loaded.

        Python opens no file for a module that was loaded before this recorder was installed.
        """
        files = (*self._loaded, *map(_file_of, list(sys.modules.values())))
        yield from (call_sites.source_of(file) for file in files if file is not None and file.startswith(self._own))

    def _finished(self, kind: Kind, name: str, site: ReadSite) -> Read:
        """Return a read as the builder gets it: a file of an installed package stands for the package."""
        if kind in PATHS:
            kind, name = self._named(kind, name)
        return Read(kind, name, site.within(self._roots), site.by)

    def _named(self, kind: Kind, path: str) -> tuple[Kind, str]:
        """Return the kind and the name of the read of a path: its package, unless a row has the path itself.

        Rows have the inputs of the step, and the files of the step's package and of this program.
        """
        package = None if path.startswith((*self._own, *self._inputs)) else packages.package_of(path)
        return (kind, path) if package is None else (Kind.PACKAGE, package)


def _file_of(module: object) -> str | None:
    """Return the file of an entry of `sys.modules`: None stands for a module that must not be imported."""
    file = getattr(module, "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else None


def _mapped_files() -> frozenset[str]:
    """Return the paths of the files that are mapped into this process: what native code opened; none outside Linux."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            paths = set(_MAPPED.findall(maps.read()))
    except OSError:
        return frozenset()
    return frozenset(path.decode("utf-8", "surrogateescape") for path in paths if not path.endswith(b"(deleted)"))
