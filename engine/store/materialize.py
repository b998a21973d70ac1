"""Puts a package under build/: real copies, replaced in one step, restored when somebody touched them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from engine import digest
from engine.errors import StoreError
from engine.store import file_lock
from engine.store.copying import copy
from engine.store.store import Record, Store


def materialize(store: Store, record: Record, place: Path) -> None:
    """Make `place` hold exactly the files of the record's artifact. Raises StoreError.

    A place that holds them already is not touched. Builders that want the same place take turns.
    """
    if is_in_place(store, record, place) and not any(left.exists() for left in _beside(place)):
        return
    try:
        with _turn(store, place):
            for left in _beside(place):  # of a build that was killed
                shutil.rmtree(left, ignore_errors=True)
            if not _holds(store, record, place):
                _refuse_strangers(place)
                _replace(store, record, place)
            marker(place).write_text(f"{record.artifact}\n")
    except OSError as error:
        raise StoreError(
            f"the package cannot be written to {place}: {error.strerror}",
            hint="name a writable folder with -o; the package itself is in the store",
        ) from error


@contextlib.contextmanager
def _turn(store: Store, place: Path) -> Iterator[None]:
    """Let no other builder at this place. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as turn:
        try:
            turn.enter_context(file_lock.hold(store.layout.locks / digest.of_bytes(os.fsencode(place.absolute()))))
        except OSError:  # a store that is full, or can only be read: packages come out of it all the same
            turn.enter_context(file_lock.hold(place.parent))
        yield


def is_in_place(store: Store, record: Record, place: Path) -> bool:
    """Say whether `place` holds exactly the files of the record's artifact, and is marked as ours."""
    try:
        return _holds(store, record, place) and marker(place).read_text() == f"{record.artifact}\n"
    except OSError:
        return False


def marker(place: Path) -> Path:
    """Return the file beside a package that says that we made it, and from which artifact."""
    return place.parent / f".{place.name}.artifact"


def _holds(store: Store, record: Record, place: Path) -> bool:
    """Say whether the place holds the artifact: its files by content, and no folder that it does not have."""
    try:
        if digest.walk(place) != sorted(record.files):
            return False
        # An empty folder counts, too: Triton would take it for a model.
        folders = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_dir()}
        if folders != {str(parent) for name in record.files for parent in Path(name).parents} - {"."}:
            return False
        return all(store.contents.digest(place / name) == content for name, (_, content) in record.files.items())
    except OSError:
        return False


def _refuse_strangers(place: Path) -> None:
    """Refuse to replace a folder that was not made here."""
    if not place.exists() or marker(place).exists() or (place.is_dir() and not any(place.iterdir())):
        return
    raise StoreError(
        f"{place} is in the way: it was not made by a build",
        hint="move it away, or name another folder with -o",
    )


def _beside(place: Path) -> tuple[Path, Path]:
    """Return where the fresh copy is made, and where the old one goes."""
    return place.parent / f".{place.name}.fresh", place.parent / f".{place.name}.old"


def _replace(store: Store, record: Record, place: Path) -> None:
    """Make a fresh copy beside the place and swap the two."""
    fresh, old = _beside(place)
    fresh.mkdir()
    try:
        for relative in record.files:
            copy(store.artifact_path(record.artifact) / relative, fresh / relative)
        marker(place).touch()  # ours, from the moment that it is there
        if place.exists():
            os.rename(place, old)
        os.rename(fresh, place)
    finally:
        for left in (fresh, old):
            shutil.rmtree(left, ignore_errors=True)
