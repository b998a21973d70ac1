"""The recorder of a worker process: notes what the present job reads."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import FrameType

from engine.builder.trace import mapped, places
from engine.builder.trace.imports import Imports
from engine.builder.trace.places import ReadSite
from engine.builder.trace.reads import FILE_NAME, Kind, Read, encode

_Reads = dict[tuple[Kind, str], ReadSite]


class Recorder:
    """Notes what the present job reads, each thing once.

    A module that an earlier job imported is not read again. So the recorder also keeps what each module read during its
    import: a later job that imports the module gets these reads, too.
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
        self._child = False
        self.imports = Imports(lambda frame: places.place_of(frame, self._roots))

    @contextlib.contextmanager
    def recording(self, folder: str, roots: tuple[str, ...], inputs: tuple[str, ...]) -> Iterator[None]:
        """Note what a job reads until the end of the context, and write the reads to a file in the job's folder.

        The code of the job's step lies below the paths in `roots`. No file is written for a job that fails.
        """
        self._inputs = inputs
        self._written, self._folders = set(), (folder + os.sep,)
        self._roots, self._folder = roots, folder
        self.imports.begin()
        self._reads = {}
        try:
            yield
            if not self._child:
                self._write()
        finally:
            self._reads = None

    @property
    def is_active(self) -> bool:
        """Whether a job is running."""
        return self._reads is not None

    def read(self, kind: Kind, name: str, frame: FrameType | None) -> None:
        """Note that the present job reads something; `frame` is the code that reads."""
        reads = self._reads
        if reads is None or (kind, name) in reads:
            return
        place = places.place_of(frame, self._roots)
        reads[kind, name] = place
        if place.owner:
            self._by_module.setdefault(place.owner, {})[kind, name] = place
        if self._child:
            self._forward(Read(kind, name, place.at, place.by))

    def read_path(self, path: str, kind: Kind, frame: FrameType | None) -> None:
        """Note that the present job reads a file or folder, unless the job has written it before."""
        path = places.source_of(os.path.abspath(path))
        if path in self._written or path.startswith(self._folders):
            return
        self.read(*self._named(kind, path), frame)

    def written(self, path: str, *, folder: bool = False) -> None:
        """Note that the present job makes a file or folder, whose content is no read of the job."""
        if folder:
            self._folders = (*self._folders, os.path.abspath(path) + os.sep)
        self._written.add(os.path.abspath(path))

    def in_child(self) -> None:
        """Continue in a forked child, which appends its reads to a file of the job."""
        self._child = True

    def _forward(self, read: Read) -> None:
        with contextlib.suppress(OSError):
            file = os.open(
                os.path.join(self._folder, f"{FILE_NAME}.children"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644
            )
            os.write(file, encode(self._root, [read]))
            os.close(file)

    def _write(self) -> None:
        reads = dict(self._reads or {})
        before, self._mapped = self._mapped, mapped.files()
        self._reads = {}
        for path in self._mapped - before:
            self.read_path(path, Kind.FILE, None)
        for name, place in self.imports.reached():
            reads.update({each: other for each, other in self._by_module.get(name, {}).items() if each not in reads})
            file = vars(sys.modules[name]).get("__file__")
            if isinstance(file, str):
                self._module(file, place)
        every = {**self._reads, **reads}
        self._reads = None
        lines = encode(self._root, (self._finished(kind, name, place) for (kind, name), place in every.items()))
        with open(os.path.join(self._folder, FILE_NAME), "wb") as file:
            file.write(lines)

    def _module(self, file: str, place: ReadSite) -> None:
        path = places.source_of(os.path.abspath(file))
        if self._reads is not None:
            self._reads.setdefault(self._named(Kind.FILE, path), place)

    def _named(self, kind: Kind, path: str) -> tuple[Kind, str]:
        """Return the kind and the name of the read of a path: its package, unless the path is the step's own."""
        if path.startswith(places.ENGINE) and not places.does_work(path):
            return Kind.PACKAGE, places.ENGINE
        package = None if path.startswith((*self._roots, *self._inputs)) else places.package_of(path)
        return (kind, path) if package is None else (Kind.PACKAGE, package)

    def _finished(self, kind: Kind, name: str, place: ReadSite) -> Read:
        is_engine = kind is Kind.FILE and name.startswith(places.ENGINE)
        importer = vars(sys.modules.get(place.by, sys)).get("__file__") if is_engine else None
        return Read(kind, name, place.at, place.by, importer or "")

    @property
    def _root(self) -> str:
        return self._roots[0] if self._roots else ""
