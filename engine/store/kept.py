"""Files kept between runs, such as TensorRT's timing cache: they save time and never change a result."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from engine import digest
from engine.key import Key
from engine.store.sealed import sealed_bytes, unsealed_bytes
from engine.store.store import Store
from engine.system import regular


def name_of(step: str, kept_by: Sequence[str], key: Key) -> str | None:
    """Return the name of the kept file of the step `step` for a key; None for a step that keeps none.

    `kept_by` is the step's attribute of that name: the names of the rows of the key that name the kept file.
    """
    rows = [(row, key[row]) for row in kept_by if row in key]
    if not kept_by or len(rows) < len(kept_by):
        return None
    return digest.of_rows([("step", step), *rows])


def lend(store: Store, name: str | None, place: Path) -> None:
    """Copy the kept file `name` of the store to `place`, if the kept file exists and is undamaged."""
    if name is None:
        return
    path = store.layout.kept / name
    with contextlib.suppress(OSError, ValueError):
        place.write_bytes(read(path))
        os.utime(path)  # the time of the last use


def take(store: Store, name: str | None, place: Path) -> None:
    """Copy the file that a job left at `place` to the store's kept files; do nothing if there is no file."""
    if name is None or not place.is_file():
        return
    with contextlib.suppress(OSError):  # a kept file only saves time
        store.layout.kept.mkdir(exist_ok=True)
        store.write(store.layout.kept / name, sealed_bytes(regular.read(place)))


def read(path: Path) -> memoryview:
    """Return the content of a kept file. Raises OSError, and ValueError for a damaged one."""
    return unsealed_bytes(regular.read(path))
