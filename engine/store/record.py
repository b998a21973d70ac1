"""The record of a job's run, as the store keeps it and a remote carries it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.digest import Digest
from engine.key import Key, digest_of
from engine.store import output
from engine.store.output import Files
from engine.text import distribution


@dataclass(frozen=True)
class Record:
    """The record of a job's run: the rows of its key, its artifact, and the measurements of the run."""

    key: Key
    artifact: Digest
    files: Files
    report: Mapping[str, object]
    seconds: float
    peak_bytes: int
    machine: Mapping[str, str] = field(default_factory=dict)
    made_at: float = 0.0
    report_version: int = 1
    """The version of the report's form; records without this field have version 1."""
    log: str = ""
    """The digest of the run's log; empty for an empty log."""
    job: str = ""
    """The name of the job, for explanations only."""
    step: str = ""
    """The class of the step that ran, as `module:Class`; empty in older records."""
    binding: str = ""
    """The digest of step, key, output and report (`output.binding`), computed where the output was read.

    The binding is empty in older records, which cannot be checked against it.
    """
    trace: str = ""
    """The digest of the trace: what the run read. Empty for a record of a version that kept no traces."""
    gaps: Sequence[Mapping[str, str]] = ()
    """What the run read and no row of the key covers: the fields of each `Gap`."""
    anonymous_bytes: int = 0
    """The largest memory of the run without the pages of mapped files, from samples; 0 for a run without samples."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """The remote that the record came from, and the identifier of the key that signed it; empty for an own record."""

    @cached_property
    def digest(self) -> Digest:
        """The digest of the key, under which the record is filed."""
        return digest_of(self.key)

    @property
    def size(self) -> int:
        """The artifact's size in bytes."""
        return sum(size for size, _ in self.files.values())

    @property
    def maker_version(self) -> str:
        """The version of this program that made the record; "" for a record of a version that did not say so."""
        return self.machine.get(distribution.VERSION_FACT, "")

    @property
    def came(self) -> str:
        """Where the record comes from, for people."""
        return f"from {self.origin['remote']}" if self.origin else "made here"

    @property
    def is_bound(self) -> bool:
        """Whether the output and the report were made for the record's own key and step, as far as the record tells."""
        own = output.binding(step=self.step, key=self.digest, tree=output.tree(self.files), report=self.report)
        return self.binding in ("", own)

    def fields(self) -> dict[str, object]:
        """Return the record's fields as a mapping from name to value, as the record's file has them."""
        own = self.__dict__
        return {name: own[name] for name in self.__dataclass_fields__}
