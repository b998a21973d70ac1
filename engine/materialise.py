"""Puts a package under build/: real copies, replaced in one step, restored when somebody touched them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from engine import digest
from engine.disk import write_atomically
from engine.errors import StoreError
from engine.kit.copying import copy
from engine.stat_cache import stat_row
from engine.store import Record, Store


def materialise(store: Store, record: Record, place: Path) -> None:
    """Make `place` hold exactly the files of the record's artifact. Raises StoreError.

    A place that still has the stat rows it was left with is not touched.
    """
    name = digest.of_bytes(os.fsencode(place.absolute()))
    left = {"artifact": str(record.artifact), "rows": _rows(place)}
    if left["rows"] and store.note("outputs", name) == left:
        return
    try:
        _refuse_strangers(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        try:
            fresh.chmod(0o755)
            for relative in record.files:
                copy(store.artifact_path(record.artifact) / relative, fresh / relative)
            write_atomically(_marker(place), f"{record.artifact}\n".encode())
            _swap(fresh, place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise StoreError(
            f"the package cannot be written to {place}: {error.strerror}",
            hint="name a writable folder with -o; the package itself is in the store",
        ) from error
    store.keep_note("outputs", name, {"artifact": str(record.artifact), "rows": _rows(place)})


def _rows(place: Path) -> Mapping[str, list[int]]:
    with contextlib.suppress(OSError):
        files = {name: stat_row(place / name) for name in digest.walk(place)}
        # A folder counts by being there: Triton would take an empty one for a model.
        return files | {f"{path.relative_to(place)}/": [] for path in place.rglob("*") if path.is_dir()}
    return {}


def _refuse_strangers(place: Path) -> None:
    """Refuse to replace a folder that was not made here."""
    if not place.exists() or _marker(place).exists() or (place.is_dir() and not any(place.iterdir())):
        return
    raise StoreError(
        f"{place} is in the way: it was not made by a build",
        hint="move it away, or name another folder with -o",
    )


def _marker(place: Path) -> Path:
    """Return the file beside a package that says that we made it, and from which artifact."""
    return place.parent / f".{place.name}.artifact"


def _swap(fresh: Path, place: Path) -> None:
    if place.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        os.rename(place, old / "old")
        os.rename(fresh, place)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.rename(fresh, place)
