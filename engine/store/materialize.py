"""Copy a package to `build/`: the folder is replaced atomically, and only if its files differ from the artifact."""

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
    """Make the folder `place` hold exactly the files of the record's artifact. Raises StoreError.

    A folder that already holds exactly the artifact's files is not touched. Builders that write the same folder take
    turns.
    """
    if is_in_place(store, record, place) and not any(left.exists() for left in _beside(place)):
        _forget_withdrawn(place)
        return
    try:
        with _turn(store, place):
            for left in _beside(place):  # left by a build that was killed
                shutil.rmtree(left, ignore_errors=True)
            if not _holds(store, record, place):
                _refuse_strangers(place)
                _replace(store, record, place)
            marker(place).write_text(f"{record.artifact}\n")
        _forget_withdrawn(place)
    except OSError as error:
        raise StoreError(
            f"the package cannot be written to {place}: {error.strerror}",
            hint="name a writable folder with -o; the package itself is in the store",
        ) from error


def withdraw(store: Store, place: Path) -> Path | None:
    """Move a package of an earlier build to the folder `.previous` beside it, so that nothing deploys the package.

    Returns the package's new path; None if there is no package, or if the folder was not made by a build. Raises
    StoreError. `materialize` removes the moved package as soon as a build delivers the package again.
    """
    if not (place.is_dir() and marker(place).is_file()):
        return None
    aside = _withdrawn(place)
    try:
        with _turn(store, place):
            shutil.rmtree(aside, ignore_errors=True)
            aside.parent.mkdir(exist_ok=True)
            os.rename(place, aside)
            marker(place).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"the package {place} cannot be moved away: {error.strerror}") from error
    return aside


def _withdrawn(place: Path) -> Path:
    """Return the path of a package that was moved away; `build/*` of a shell does not match its folder."""
    return place.parent / ".previous" / place.name


def _forget_withdrawn(place: Path) -> None:
    """Remove the package that was moved away, after a build has delivered the package again."""
    aside = _withdrawn(place)
    if aside.exists():
        shutil.rmtree(aside, ignore_errors=True)
        with contextlib.suppress(OSError):  # other packages may be in the folder
            aside.parent.rmdir()


@contextlib.contextmanager
def _turn(store: Store, place: Path) -> Iterator[None]:
    """Keep other builders away from a folder while the block runs. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as turn:
        try:
            turn.enter_context(file_lock.hold(store.layout.locks / digest.of_bytes(os.fsencode(place.absolute()))))
        except OSError:  # a full or read-only store has no lock to take, and packages can still be copied out of it
            turn.enter_context(file_lock.hold(place.parent))
        yield


def is_in_place(store: Store, record: Record, place: Path) -> bool:
    """Say whether the folder `place` equals a record's artifact and its marker file names that artifact."""
    try:
        return _holds(store, record, place) and marker(place).read_text() == f"{record.artifact}\n"
    except OSError:
        return False


def marker(place: Path) -> Path:
    """Return the path of a package's marker, a file beside the package with the digest of the copied artifact."""
    return place.parent / f".{place.name}.artifact"


def _holds(store: Store, record: Record, place: Path) -> bool:
    """Say whether a folder has the artifact's files, by content, and no other file or folder."""
    try:
        if digest.walk(place) != sorted(record.files):
            return False
        # Empty folders count, because Triton takes each folder for a model.
        folders = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_dir()}
        if folders != {str(parent) for name in record.files for parent in Path(name).parents} - {"."}:
            return False
        return all(store.contents.digest(place / name) == content for name, (_, content) in record.files.items())
    except OSError:
        return False


def _refuse_strangers(place: Path) -> None:
    """Refuse to replace a folder that no build made. Raises StoreError."""
    if not place.exists() or marker(place).exists() or (place.is_dir() and not any(place.iterdir())):
        return
    raise StoreError(
        f"{place} is in the way: it was not made by a build",
        hint="move it away, or name another folder with -o",
    )


def _beside(place: Path) -> tuple[Path, Path]:
    """Return the temporary paths for a new copy of the package and for the old package."""
    return place.parent / f".{place.name}.fresh", place.parent / f".{place.name}.old"


def _replace(store: Store, record: Record, place: Path) -> None:
    """Make a new copy of the package beside the old package, and exchange the two by renaming."""
    fresh, old = _beside(place)
    fresh.mkdir()
    try:
        for relative in record.files:
            copy(store.artifact_path(record.artifact) / relative, fresh / relative)
        marker(place).touch()  # before the package, so that a killed build leaves no package without a marker
        if place.exists():
            os.rename(place, old)
        os.rename(fresh, place)
    finally:
        for left in (fresh, old):
            shutil.rmtree(left, ignore_errors=True)
