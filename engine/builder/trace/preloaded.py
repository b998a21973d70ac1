"""Preloaded reads: what the imports of a step's module read, computed once before the processes of jobs are forked."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from engine.builder.trace.places import ReadSite
from engine.builder.trace.reads import Kind

ReadKey = tuple[Kind, str]
"""The kind and the name of a read, as the hook reports them."""
Identity = tuple[Kind, str, str]
"""What makes a line in the file of reads unique: kind, name, and the package of the code that read a path."""
ModuleReads = tuple[tuple[ReadKey, Identity, bytes], ...]
"""What one module read: the key, the identity and the line of each read."""


@dataclass(frozen=True)
class PreloadedReads:
    """The reads of all modules that a job reaches by its first imports, the step's module and `engine.step`."""

    roots: tuple[tuple[str, ReadSite], ...]
    """The first imports of the job."""
    folders: tuple[str, ...]
    """The folders, or the file, of the step's package."""
    modules: tuple[tuple[str, ModuleReads], ...]
    """The reads of each module, after the reads of native code, which belong to no module ('')."""
    native: frozenset[str]
    """The files that are mapped into the process."""
    libraries: frozenset[ReadKey]
    """The keys of the reads of native code."""
    names: frozenset[str]
    """The names of the modules."""
    paths: frozenset[str]
    """The names of what the modules read, among them all paths."""

    @classmethod
    def of(
        cls,
        roots: tuple[tuple[str, ReadSite], ...],
        folders: tuple[str, ...],
        modules: tuple[tuple[str, ModuleReads], ...],
        native: frozenset[str],
    ) -> Self:
        """Return the reads of modules, which a job with these first imports reaches in this order."""
        paths = frozenset(name for _, reads in modules for (_, name), _, _ in reads)
        libraries = frozenset(key for name, reads in modules if not name for key, _, _ in reads)
        return cls(roots, folders, modules, native, libraries, frozenset(name for name, _ in modules), paths)

    def fits(self, *, roots: tuple[tuple[str, ReadSite], ...], folders: tuple[str, ...], inputs: tuple[str, ...],
             changed: AbstractSet[str]) -> bool:  # fmt: skip
        """Say whether a job reads the same. `changed` are the modules whose code ran again, or for the first time."""
        return (
            roots[: len(self.roots)] == self.roots
            and folders == self.folders
            and changed.isdisjoint(self.names)
            and not (inputs and any(path.startswith(inputs) for path in self.paths))
        )

    def lines(self, modules: AbstractSet[str], reads: AbstractSet[ReadKey]) -> Iterator[tuple[Identity, bytes]]:
        """Yield the lines of all reads, without those of some modules, and without some reads."""
        for name, entries in self.modules:
            if name not in modules:
                yield from ((identity, line) for key, identity, line in entries if key not in reads)
