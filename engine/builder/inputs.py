"""The inputs of a job while it runs: whether they stay as they were stored, and who is to blame where they do not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from engine.errors import StepError, StoreError, UserError
from engine.store.record import Record
from engine.store.stat_cache import Row, row_of
from engine.store.store import Store

_WRITTEN = 4
"""The number of fields of a stat row that only a write changes: device, inode, size and modification time."""


class DamagedInputError(StoreError):
    """A file of the store was damaged before a job read the file, so the result of the job is discarded."""

    def __init__(self, what: str, facts: Sequence[str] = (), hint: str = "", *, mended: bool = False) -> None:
        super().__init__(what, facts, hint)
        self.mended = mended
        """Whether the store is whole again, so that the job can run again at once."""


def rows(store: Store, record: Record) -> list[Row | None]:
    """Return the stat rows of an artifact's files and folders; None for a missing one."""
    folder = store.artifact_path(record.artifact)
    files = [folder / name for name in record.files]
    return [_row(path) for path in dict.fromkeys((folder, *(file.parent for file in files), *files))]


def are_touched(before: Sequence[Row | None], now: Sequence[Row | None]) -> bool:
    """Say whether a file or folder of an artifact was written or replaced, also if it is as before again.

    The time of change alone tells nothing: other builders make and remove hard links to stored files.
    """
    return any(old is None or new is None or old[:_WRITTEN] != new[:_WRITTEN]
               for old, new in zip(before, now, strict=True))  # fmt: skip


def fault(store: Store, record: Record, before: Sequence[Row | None], *, step: str, name: str) -> UserError:
    """Return the error about a damaged input, after the store has mended the input or moved it to `quarantine/`.

    `before` are the stat rows of the input's files at the start of the step. A step can only be to blame if a stat row
    has changed since then.
    """
    is_changed = rows(store, record) != before
    mended = store.find(record.key) is not None
    after = (
        "the store is mended" if mended else f"it is in quarantine/, and {record.job!r} runs again in the next build"
    )
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


def _row(path: Path) -> Row | None:
    try:
        return row_of(os.lstat(path))
    except OSError:
        return None
