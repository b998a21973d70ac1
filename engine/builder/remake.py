"""Make a stored job again and compare the bytes: whether a step is as reproducible as it says."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder.job import Job
from engine.errors import StepError, UsageError
from engine.store.output import Files
from engine.store.record import Record
from engine.store.store import Store
from engine.system import regular
from engine.text import lists

if TYPE_CHECKING:
    from engine.step import Step

ALL = "all"
"""The name that stands for every reproducible step."""
FOLDER = "remade"
"""The folder, below the folder of packages, that keeps outputs which differ from the stored ones."""
_CHUNK = 1 << 20
_LISTED = 8
"""The greatest number of files that an error lists."""


def refuse_unreproducible(names: Iterable[str], steps: Mapping[str, type[Step]]) -> None:
    """Raise UsageError for the name of a step whose bytes nothing promises. Names of no step are left to others."""
    for name in sorted(names):
        if name in steps and not steps[name].reproducible:
            raise UsageError(
                f"the step {name!r} says that its bytes differ from run to run (`reproducible = False`)",
                ["--remake compares the bytes of two runs, and a difference would tell nothing"],
                f"--force {name} runs the step again and takes the new output; --remake all leaves such steps out",
            )


def includes(names: frozenset[str], job: Job) -> bool:
    """Say whether a job is to be made again."""
    return job.traits.reproducible and (job.step_name in names or ALL in names)


@dataclass(frozen=True)
class FileDifference:
    """A file in which two runs of a job differ. A size is None where a run wrote no such file."""

    name: str
    stored: int | None
    remade: int | None
    offset: int | None = None
    """The place of the first byte that differs."""

    def __str__(self) -> str:
        if self.stored is None or self.remade is None:
            run, size = ("second", self.remade) if self.stored is None else ("first", self.stored)
            return f"{self.name}: only the {run} run wrote it ({size} bytes)"
        sizes = f"{self.stored} bytes stored, {self.remade} bytes in the second run"
        return f"{self.name}: {sizes}; the first different byte is byte {self.offset}"


def refuse_differences(store: Store, record: Record, job: Job, out: Path, files: Files, *, keep: Path) -> None:
    """Raise StepError if the output `out` of a second run differs from the stored artifact.

    The second output is then moved to the folder `keep`. The store does not change.
    """
    if files == record.files:
        return
    differing = list(differences(store.artifact_path(record.artifact), record.files, out, files))
    if keep.exists():
        shutil.rmtree(keep)
    keep.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(out, keep)
    more = len(differing) - _LISTED
    raise StepError(
        f"the step {job.name!r} is not reproducible: a second run for the same key wrote other bytes",
        [
            *map(str, differing[:_LISTED]),
            *([f"and {lists.counted(more, 'more file')}"] if more > 0 else []),
            f"stored output: {store.artifact_path(record.artifact)}",
            f"second output: {keep}",
        ],
        "the store is unchanged; mend the step, or let it declare `reproducible = False`",
    )


def differences(stored: Path, first: Files, remade: Path, second: Files) -> Iterator[FileDifference]:
    """Yield each file in which two outputs differ, by the sizes and digests of their files."""
    for name in sorted(first.keys() | second.keys()):
        if first.get(name) != second.get(name):
            before, after = (files[name][0] if name in files else None for files in (first, second))
            offset = None if before is None or after is None else _first_difference(stored / name, remade / name)
            yield FileDifference(name, before, after, offset)


def _first_difference(one: Path, other: Path) -> int:
    with regular.open_file(one) as left, regular.open_file(other) as right:
        begin = 0
        while True:
            a, b = left.read(_CHUNK), right.read(_CHUNK)
            if a != b or not a:
                same = next((index for index, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), None)
                return begin + (min(len(a), len(b)) if same is None else same)
            begin += len(a)
