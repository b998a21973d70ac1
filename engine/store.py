"""The only writer of cache/: artifacts by content, records by key."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine import digest
from engine.digest import Digest
from engine.disk import explained, flush, has_size, link_or_copy, same_file, write_atomically
from engine.errors import StoreError
from engine.key import Key, digest_of

FORMAT = "1"
"""The version of the layout on disk; another one is left alone with a clear word."""

_YOUNG_SECONDS = 60
_STORED_NS = 1_000_000_000
"""The modification time of every stored file: one second after the epoch."""
_FOLDERS = ("artifacts", "files", "records", "staging", "locks", "logs", "heads")


@dataclass(frozen=True)
class Record:
    """What a job made: its key's rows, its artifact, and what was measured while making it."""

    key: Key
    artifact: Digest
    files: Mapping[str, tuple[int, Digest]]
    """Relative path -> size in bytes and content."""
    report: Mapping[str, Any]
    seconds: float
    peak_bytes: int
    machine: Mapping[str, str] = field(default_factory=dict)
    made_at: float = 0.0

    @property
    def digest(self) -> Digest:
        """The digest of its key, under which it is filed."""
        return digest_of(self.key)

    @property
    def size(self) -> int:
        """The artifact's size in bytes."""
        return sum(size for size, _ in self.files.values())


class Store:
    """A cache directory. Everything is written to `staging/`, flushed, and renamed into place."""

    def __init__(self, root: Path) -> None:
        """Open the store at `root`, made if it is not there. Raises StoreError."""
        self.root = root.absolute()
        self._swept = False
        with explained(self.root):
            for name in _FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            stamp = self.root / "format"
            if not stamp.exists():
                write_atomically(stamp, FORMAT.encode())
            found = stamp.read_text().strip()
        if found != FORMAT:
            raise StoreError(
                f"the store at {self.root} has format {found}, and this version reads format {FORMAT}",
                ["nothing in it was touched"],
                "name another folder with --cache, or move this one away",
            )

    # -- reading ---------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Record | None:
        """Return the record of a key whose artifact is whole as far as names and sizes tell, or None."""
        record = self.read(digest_of(key))
        return record if record is not None and record.key == key and self.is_whole(record) else None

    def read(self, key: Digest | str) -> Record | None:
        """Return the record filed under a key's digest, or None."""
        try:
            raw = json.loads(self.record_path(key).read_bytes())
            files = {name: (int(size), Digest(content)) for name, (size, content) in raw.pop("files").items()}
            return Record(**raw, files=files)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            return None  # a torn or foreign record is no record; the job is made again and the file replaced

    def records(self) -> Iterator[Record]:
        """Yield every record, in the order of their digests."""
        for path in sorted((self.root / "records").glob("*.json")):
            record = self.read(path.stem)
            if record is not None:
                yield record

    def record_path(self, key: Digest | str) -> Path:
        """Return where the record of a key's digest lies."""
        return self.root / "records" / f"{key}.json"

    def artifact_path(self, artifact: Digest) -> Path:
        """Return where an artifact lies. Its files are read-only and may share their content with others."""
        return self.root / "artifacts" / artifact

    def log_path(self, key: Digest) -> Path:
        """Return where the log of a job's last run lies, made or failed."""
        return self.root / "logs" / f"{key}.log"

    def is_whole(self, record: Record) -> bool:
        """Say whether a record's artifact has all its files, as they were stored.

        A stored file has a modification time of its own choice, so that one which somebody wrote to is read again.
        """
        folder = self.artifact_path(record.artifact)
        return all(_is_as_stored(folder / name, size, content) for name, (size, content) in record.files.items())

    # -- writing ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """Give a fresh folder on the store's own disk; whatever is left in it afterwards is removed."""
        with explained(self.root):
            self._sweep()
            folder = Path(tempfile.mkdtemp(dir=self.root / "staging"))
            handle = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(OSError):  # network file systems may not lock folders: then nobody sweeps them
                fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)

    def _sweep(self) -> None:
        """Remove, once, what builders that were killed have left: folders whose lock nobody holds."""
        if self._swept:
            return
        self._swept = True
        for folder in (self.root / "staging").iterdir():
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime < _YOUNG_SECONDS:
                    continue  # perhaps made a moment ago and not locked yet
                handle = os.open(folder, os.O_RDONLY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(handle)

    def commit(self, key: Key, made: Path, *, report: Mapping[str, Any], seconds: float, peak_bytes: int,
               machine: Mapping[str, str]) -> Record:  # fmt: skip
        """Take the files under `made` over as the artifact of `key`, and file the record. Raises StoreError.

        The record is written last: it never names what is not stored yet.
        """
        if made.is_symlink() or not made.is_dir():
            raise StoreError("a step left no folder as its output", hint="steps write files below the folder they get")
        with explained(self.root):
            files = {name: self._adopt(made / name) for name in digest.walk(made)}
            artifact = digest.of_tree({name: content for name, (_, content) in files.items()})
            self._publish(made, artifact, files)
            record = Record(
                key=key, artifact=artifact, files=files, report=report, seconds=round(seconds, 3),
                peak_bytes=peak_bytes, machine=machine, made_at=round(time.time(), 3),
            )  # fmt: skip
            text = json.dumps(asdict(record), indent=1, sort_keys=True, allow_nan=False)
            write_atomically(self.record_path(digest_of(key)), text.encode())
        return record

    def _adopt(self, path: Path) -> tuple[int, Digest]:
        """Make a staged file one with its content in `files/`, stored once."""
        if path.is_symlink() or not path.is_file():
            raise StoreError(
                f"a step left {path.name!r} in its output, which is no plain file", hint="steps write plain files only"
            )
        content = digest.of_file(path)
        pooled = self.root / "files" / content[:2] / content
        if not same_file(path, pooled):
            if _is_copy_of(path, pooled):
                path.unlink()
                link_or_copy(pooled, path)
            else:
                path.chmod(0o444)
                os.utime(path, ns=(_STORED_NS, _STORED_NS))
                flush(path)
                pooled.parent.mkdir(exist_ok=True)
                with contextlib.suppress(FileNotFoundError):
                    pooled.unlink()
                with contextlib.suppress(OSError):
                    os.link(path, pooled)
        return path.stat().st_size, content

    def _publish(self, made: Path, artifact: Digest, files: Mapping[str, tuple[int, Digest]]) -> None:
        place = self.artifact_path(artifact)
        if place.exists():
            if all(same_file(place / name, made / name) or _is_as_stored(place / name, *files[name]) for name in files):
                return
            os.replace(place, Path(tempfile.mkdtemp(dir=self.root / "staging")) / "broken")
        flush(made)
        try:
            os.rename(made, place)
        except OSError as error:
            # Another builder published the same content first: as good as ours.
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        flush(place.parent)

    def try_lock(self, key: Digest) -> Lock | None:
        """Take the lock of a key, or return None while another builder holds it. A dead holder frees it."""
        with explained(self.root):
            handle = os.open(self.root / "locks" / key, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            except OSError:
                os.close(handle)
                raise
        return Lock(handle)

    # -- small facts kept between builds ---------------------------------------------------------------------

    def note(self, kind: str, name: str) -> dict[str, Any]:
        """Return a note kept between builds, {} where there is none. Notes speed up or explain, never decide."""
        try:
            loaded = json.loads((self.root / kind / f"{name}.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return loaded if isinstance(loaded, dict) else {}

    def notes(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield all notes of a kind."""
        for path in sorted((self.root / kind).glob("*.json")):
            yield self.note(kind, path.stem)

    def keep_note(self, kind: str, name: str, value: Mapping[str, Any]) -> None:
        """Keep a note until it is replaced. A store that cannot be written keeps none: notes decide nothing."""
        with contextlib.suppress(OSError):
            (self.root / kind).mkdir(exist_ok=True)
            write_atomically(self.root / kind / f"{name}.json", json.dumps(value, sort_keys=True).encode())


class Lock:
    """An exclusive lock on one key, held until `release`."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def release(self) -> None:
        """Let others have the key."""
        os.close(self._handle)


def _is_copy_of(path: Path, pooled: Path) -> bool:
    """Say whether the pool already holds this content; a damaged pool file does not count."""
    return has_size(pooled, path.stat().st_size) and digest.of_file(pooled) == pooled.name


def _is_as_stored(path: Path, size: int, content: Digest) -> bool:
    try:
        found = path.stat()
        if found.st_size != size:
            return False
        if found.st_mtime_ns == _STORED_NS:
            return True
        if digest.of_file(path) != content:
            return False
    except OSError:
        return False
    with contextlib.suppress(OSError):
        os.utime(path, ns=(_STORED_NS, _STORED_NS))  # copied along with the store, say: whole after all
    return True
