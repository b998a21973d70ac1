"""The inputs of a job while it runs: whether they and the ways to them stay as they were, and who is to blame."""

# A file that is moved away and back has another change time, so the stat rows of a job's files tell of it. The stat
# row of a file tells nothing of a link or folder above the file, nor of a file system that is mounted over it.

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from engine.errors import StepError, StoreError, UserError
from engine.recipe import path_ways
from engine.store.record import Record
from engine.store.stat_cache import Row, is_moved, row_of
from engine.store.store import Store
from engine.system.file_systems import UNSEEN, MountEvents

_PathRow = tuple[int, Row] | None
"""The kind of a file (S_IFMT), and its stat row without following links; None where nothing is."""
_WRITTEN = 4
"""The number of fields of a stat row that only a write changes: device, inode, size and modification time."""


class DamagedInputError(StoreError):
    """A file of the store was damaged before a job read the file, so the result of the job is discarded."""

    def __init__(self, what: str, facts: Sequence[str] = (), hint: str = "", *, mended: bool = False) -> None:
        super().__init__(what, facts, hint)
        self.mended = mended
        """Whether the store is whole again, so that the job can run again at once."""


class RunInputs:
    """The inputs of a job, and the ways to everything that it reads, as they were when the object was made."""

    def __init__(self, store: Store, records: Mapping[str, Record], paths: Iterable[str], mounts: MountEvents) -> None:
        """`records` are those of the inputs, by parameter. `paths` are the absolute paths of all that the job reads.

        `mounts` notes what is mounted and unmounted from now on.
        """
        self._store, self._records = store, records
        self._stored = {name: _stored(store, record) for name, record in records.items()}
        self._paths = frozenset(paths)
        self._on_ways = _on_ways(self._paths)
        self._mounts, self._count = mounts, mounts.count

    def changed_way(self) -> str | None:
        """Return a place on the ways that was moved, replaced or mounted over, also if it is there again; else None."""
        noted = ((location, row) for location, row in self._on_ways.items() if row is None or not stat.S_ISREG(row[0]))
        moved = (location for location, before in noted if _differs(before, _row(location)))
        return next(moved, None) or next(filter(self._holds, self._mounts.after(self._count)), None)

    def _holds(self, mounted: str) -> bool:
        """Say whether a mount at the place `mounted` can hide something that lies at one of the paths."""
        inside = (os.path.join(os.path.realpath(path), "") for path in self._paths)
        return mounted == UNSEEN or mounted in self._on_ways or os.path.join(mounted, "").startswith(tuple(inside))

    def refuse_damaged(self, step: str) -> None:
        """Raise UserError for an input that is not as it was stored, or that was replaced, also if it is as before.

        The store has then mended the input, or moved it to `quarantine/`. A step can only be to blame if a stat row has
        changed since it began. The time of change alone tells nothing: other builders make and remove hard links to
        stored files.
        """
        for name, record in self._records.items():
            is_whole = self._store.artifacts.is_whole(record)
            before, now = self._stored[name], _stored(self._store, record)
            if not is_whole:
                raise self._damage(record, step=step, name=name, is_changed=now != before)
            if [row and row[1][:_WRITTEN] for row in before] != [row and row[1][:_WRITTEN] for row in now]:
                raise changed(step, name, f"a file of the artifact {record.artifact} was replaced")

    def _damage(self, record: Record, *, step: str, name: str, is_changed: bool) -> UserError:
        """Return the error about a damaged input, after the store has mended the input or moved it away."""
        mended = self._store.find(record.key) is not None
        away = f"it is in quarantine/, and {record.job!r} runs again in the next build"
        after = "the store is mended" if mended else away
        if is_changed:
            return changed(step, name, f"a file of the artifact {record.artifact} is not as it was stored: {after}")
        return DamagedInputError(
            f"the store was damaged: the input {name!r} of the step {step!r} is not as it was stored",
            [f"no file of the artifact {record.artifact} changed while the step was running", after],
            "build again; `recipe cache verify` looks for further damage",
            mended=mended,
        )


def changed(step: str, name: str, *facts: str) -> StepError:
    """Return the error about an input that changed while a step was running."""
    return StepError(
        f"the input {name!r} changed while the step {step!r} was running",
        facts,
        "a step that changes a file must work on a copy of the file; if this step does, another program changed it",
    )


def _stored(store: Store, record: Record) -> list[_PathRow]:
    """Return the rows of an artifact's files and folders."""
    folder = store.artifact_path(record.artifact)
    files = [folder / name for name in record.files]
    return [_row(path) for path in dict.fromkeys((folder, *(file.parent for file in files), *files))]


def _on_ways(paths: Collection[str]) -> dict[str, _PathRow]:
    """Return the row of each path, and of every link and folder on the way to it."""
    rows: dict[str, _PathRow] = {}
    for path in (*paths, *dict.fromkeys(map(os.path.dirname, paths))):
        row = rows[path] = _row(path)
        if row is None or not stat.S_ISREG(row[0]):  # the way to a file is the way to its folder
            rows.update({location: _row(location) for location in path_ways.way_to(path) if location not in rows})
    return rows


def _row(location: str | Path) -> _PathRow:
    try:
        status = os.lstat(location)
    except OSError:
        return None
    return stat.S_IFMT(status.st_mode), row_of(status)


def _differs(before: _PathRow, now: _PathRow) -> bool:
    """Say whether a link or a folder was moved or replaced."""
    if before is None or now is None or before[0] != now[0]:
        return before != now
    if stat.S_ISDIR(now[0]):
        return is_moved(before[1], now[1])
    return before != now
