"""The recorder of a worker process: notes what the present job reads."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

from engine.builder.trace import places
from engine.builder.trace.places import ReadSite
from engine.builder.trace.reads import FILE_NAME, Kind, Read, encode

_ReadKey = tuple[Kind, str]
"""The kind and the name of a read, as the hook reports them."""
_Reads = dict[_ReadKey, ReadSite]
_MAPPED = re.compile(rb"/.*")
_PATHS = (Kind.FILE, Kind.FOLDER, Kind.STATUS)


class Recorder:
    """Notes what the present job reads, each thing once.

    A module that was imported before the job began, by an earlier job or by the process that forked the job's process,
    is not read again. So the recorder also keeps what each module read during its import: every job that uses the
    module gets these reads, too.
    """

    def __init__(self) -> None:
        self._reads: _Reads | None = None
        self._by_module: dict[str, _Reads] = {}
        self._written: set[str] = set()
        self._folders: tuple[str, ...] = ()
        self._roots: tuple[str, ...] = ()
        self._inputs: tuple[str, ...] = ()
        self._mapped: frozenset[str] = frozenset()
        self._folder = ""
        self._loaded: set[_ReadKey] = set()
        self._modules: set[str] = set()
        self._is_copy = False
        self._imported: dict[str, ReadSite] = {}
        """The modules that import statements of the present job named, each with the code of the first one."""
        self._below: dict[str, set[str]] = {}
        """What each module named in the import statements that ran as it was imported."""

    def begin(self) -> None:
        """Count the files that Python has mapped until now for no read of a job."""
        self._mapped = _mapped_files()

    @contextlib.contextmanager
    def recording(self, folder: str, roots: tuple[str, ...], inputs: tuple[str, ...]) -> Iterator[None]:
        """Note what a job reads until the end of the context, and write the reads to a file in the job's folder.

        The code of the job's step lies below the paths in `roots`. No file is written for a job that fails, nor by a
        copy of the process that the job has forked.
        """
        self._roots, self._inputs, self._folder = roots, inputs, folder
        self._written, self._folders = set(), (folder + os.sep,)
        self._is_copy, self._loaded = False, set()
        self._imported, self._reads = {}, {}
        try:
            yield
            if not self._is_copy:
                self._write()
        finally:
            self._reads = None

    def prepare(self) -> None:
        """Fill the caches about the files of all imported modules; each job of a forked worker looks them up."""
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                self._named(Kind.FILE, places.source_of(os.path.abspath(file)))

    @property
    def is_active(self) -> bool:
        """Whether a job is running."""
        return self._reads is not None

    def read(self, kind: Kind, name: str, frame: FrameType | None) -> None:
        """Note that the present job reads something; `frame` is the code that reads."""
        reads = self._reads
        if reads is not None and (kind, name) in reads:
            return
        site = places.site_of(frame, self._roots)
        if site.owner or reads is None:
            self._by_module.setdefault(site.owner, {})[kind, name] = site
        if reads is not None:
            reads[kind, name] = site
            if self._is_copy:
                self._forward(self._finished(kind, name, site))

    def read_path(self, path: str, kind: Kind, frame: FrameType | None) -> None:
        """Note that the present job reads a file or folder, unless the job has written it before."""
        path = places.source_of(os.path.abspath(path))
        if self.is_active and (path in self._written or f"{path}{os.sep}".startswith(self._folders)):
            return
        self.read(kind, path, frame)

    def status(self, path: str, frame: FrameType | None) -> None:
        """Note that the step's own code asks whether a path exists, or what is there. Libraries ask all the time."""
        if self.is_active and places.asks(frame, self._roots):
            self.read_path(path, Kind.STATUS, frame)

    def code(self, path: str, frame: FrameType | None) -> None:
        """Note that a module's file is loaded. Of the modules of an installed package, the first one is noted."""
        path = places.source_of(os.path.abspath(path))
        self._modules.add(path)
        if not self.is_active:
            return  # `_below` knows the packages that are imported before the job begins
        package = self._named(Kind.FILE, path)
        if package not in self._loaded:
            self._loaded.add(package)
            self.read_path(path, Kind.FILE, frame)

    def imports(self, names: Sequence[str], importer: str | None, frame: FrameType | None) -> None:
        """Note that an import statement names modules; some names may be those of functions.

        `importer` is the module whose import runs the statement; None for a statement of a job.
        """
        if importer is not None:
            self._below.setdefault(importer, set()).update(names)
        elif new := [name for name in names if name not in self._imported]:
            self._imported.update(dict.fromkeys(new, places.site_of(frame, self._roots)))

    def written(self, path: str, *, folder: bool = False) -> None:
        """Note that the present job makes a file or folder, whose content is no read of the job."""
        if folder:
            self._folders = (*self._folders, os.path.abspath(path) + os.sep)
        self._written.add(os.path.abspath(path))

    def in_copy(self) -> None:
        """Go on in a forked process: a copy of a job's process appends its reads to a file of the job."""
        self._is_copy = self.is_active

    def _forward(self, read: Read) -> None:
        place = os.path.join(self._folder, f"{FILE_NAME}.copies")
        with contextlib.suppress(OSError):
            file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(file, encode(self._root, [read]))
            os.close(file)

    def _write(self) -> None:
        for path in _mapped_files() - self._mapped:
            self.read_path(path, Kind.FILE, None)
        reads, self._reads = self._reads or {}, None
        for name, site in self._reached():
            for key, each in self._reads_of(name, site).items():
                reads.setdefault(key, each)
        lines: dict[tuple[Kind, str, str], Read] = {}
        for key, site in reads.items():
            read = self._finished(*key, site)
            package = read.by.partition(".")[0] if key[0] in _PATHS else ""
            lines.setdefault((read.kind, read.name, package), read)
        named = {name for _, name, _ in lines}
        nobody = places.site_of(None, ())
        own = [self._finished(Kind.FILE, file, nobody) for file in sorted(set(self._own_files()) - named)]
        with open(os.path.join(self._folder, FILE_NAME), "wb") as output:
            output.write(encode(self._root, [*lines.values(), *own]))

    def _reached(self) -> Iterator[tuple[str, ReadSite]]:
        """Yield each module that the present job uses, with the code that led to the module."""
        todo = list(self._imported.items())
        seen: set[str] = set()
        while todo:
            name, site = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in sys.modules:
                yield name, site
            todo += [(each, ReadSite(site.at, name, "")) for each in self._below.get(name, ())]
            outer = name.rpartition(".")[0]
            if outer:
                todo.append((outer, site))

    def _reads_of(self, module: str, site: ReadSite) -> _Reads:
        """Return what the import of a module read, and the module's file; `site` is the code that uses the module."""
        reads = {key: inner.within(self._roots) for key, inner in self._by_module.get(module, {}).items()}
        file = getattr(sys.modules[module], "__dict__", {}).get("__file__")
        if isinstance(file, str):
            reads.setdefault((Kind.FILE, places.source_of(os.path.abspath(file))), site)
        return reads

    def _finished(self, kind: Kind, name: str, site: ReadSite) -> Read:
        """Return a read as the builder gets it: a file of an installed package stands for the package."""
        if kind in _PATHS:
            kind, name = self._named(kind, name)
        return Read(kind, name, site.at, site.by)

    def _named(self, kind: Kind, path: str) -> tuple[Kind, str]:
        """Return the kind and the name of the read of a path: its package, unless a row has the path itself.

        Rows have the inputs of the step, and the files of the step's package and of this program.
        """
        package = None if path.startswith((*self._own, *self._inputs)) else places.package_of(path)
        return (kind, path) if package is None else (Kind.PACKAGE, package)

    def _own_files(self) -> Iterator[str]:
        """Yield the files of the step's package and of this program that are loaded, or were read during an import.

        `sys.modules` lacks a module that code has loaded by its file; Python opens no file for a module that was loaded
        before this recorder was installed.
        """
        own = self._own
        yield from (file for file in self._modules if file.startswith(own))
        lost = (reads for module, reads in self._by_module.items() if module not in sys.modules)
        yield from (name for reads in lost for kind, name in reads if kind is Kind.FILE and name.startswith(own))
        for module in list(sys.modules.values()):
            file = getattr(module, "__dict__", {}).get("__file__")  # None stands for a module that must not be imported
            if isinstance(file, str) and file.startswith(own):
                yield places.source_of(os.path.abspath(file))

    @property
    def _own(self) -> tuple[str, ...]:
        """Where the files of this program and of the step's package lie, by the import path and without links."""
        return (places.ENGINE, *self._roots, *map(places.without_links, self._roots))

    @property
    def _root(self) -> str:
        return self._roots[0] if self._roots else ""


def _mapped_files() -> frozenset[str]:
    """Return the paths of the files that are mapped into this process: what native code opened; none outside Linux."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            paths = set(_MAPPED.findall(maps.read()))
    except OSError:
        return frozenset()
    return frozenset(path.decode("utf-8", "surrogateescape") for path in paths if not path.endswith(b"(deleted)"))
