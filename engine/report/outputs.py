"""What a build leaves for a variant: records, artifacts and a package, as files whose changes a snapshot watches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.store.materialize import is_in_place, marker
from engine.store.record import Record
from engine.store.store import Store


def files(store: Store, records: Iterable[Record], package: Path | None) -> Iterator[str]:
    """Yield the files of records and artifacts, and the files and folders of the package at `package`."""
    for record in records:
        yield str(store.record_path(record.digest))
        if store.is_away(record):  # nobody has needed its files yet
            continue
        folder = str(store.artifact_path(record.artifact))
        yield from (f"{folder}/{name}" for name in record.files)
    if package is not None:
        yield str(marker(package))
        yield str(package)
        yield from (str(path) for path in package.rglob("*"))


def are_whole(store: Store, records: Iterable[Record], delivered: Record | None, package: Path | None) -> bool:
    """Tell whether artifacts and package are whole; files that changed a moment ago are read again."""
    if not all(store.is_away(record) or store.is_whole(record) for record in records):
        return False
    return package is None or (delivered is not None and is_in_place(store, delivered, package))
