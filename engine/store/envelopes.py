"""The signed statements of records: a file for each, or one file for the many small records of a push."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Container, Mapping
from pathlib import Path

from engine.digest import Digest
from engine.store.disk import entries, remove
from engine.system import regular

_LINE = re.compile(rb"^([0-9a-f]{32}) (\{.*\}\n)", re.MULTILINE)
"""A line of a batch: the digest of a record's key, and the record's envelope, which is one line of JSON."""
_BATCH = ".batch"


class Envelopes:
    """The envelopes of a store by the digests of their records' keys.

    A new file costs more than the rest of the push of a small record, so a push writes one file for many envelopes. A
    line that a power cut tore is no envelope; `recipe show --provenance` then makes a new one.
    """

    def __init__(self, folder: Path, write: Callable[[str, bytes], None]) -> None:
        """`write` replaces a file in one step."""
        self._folder = folder
        self._write = write
        self._read: set[str] = set()
        """The names of the batches that `_places` knows."""
        self._places: dict[str, tuple[str, int, int]] = {}
        """By the digest of a key: the name of the newest batch with its envelope, where that begins and ends."""

    def read(self, key: Digest) -> bytes | None:
        """Return the envelope of a record; None without one."""
        with contextlib.suppress(OSError):
            return regular.read(self._file(key))
        envelope = self._in_batch(key)
        if envelope is None:
            self._look()
            envelope = self._in_batch(key)
        return envelope

    def _in_batch(self, key: Digest) -> bytes | None:
        with contextlib.suppress(KeyError, OSError):  # the batch may be gone
            name, start, end = self._places[key]
            with regular.open_file(self._folder / name) as file:
                file.seek(start)
                return file.read(end - start)
        return None

    def keep(self, key: Digest, envelope: bytes) -> None:
        """Keep the envelope of a record. Raises OSError, StoreError."""
        self._written(self._file(key), envelope)

    def keep_all(self, envelopes: Mapping[Digest, bytes]) -> None:
        """Keep the envelopes of many records. Raises OSError, StoreError."""
        if len(envelopes) <= 1:
            for key, envelope in envelopes.items():
                self.keep(key, envelope)
            return
        lines = b"".join(b"%s %s" % (key.encode(), envelope) for key, envelope in envelopes.items())
        # The newest batch counts, and the names are in the order of time. Two processes have two names.
        self._written(f"{self._folder}/{time.time_ns():020}-{os.getpid()}{_BATCH}", lines)
        for key in envelopes:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._file(key))  # an older one

    def forget_all_but(self, keys: Container[str]) -> None:
        """Remove the envelopes of other keys. Raises OSError, StoreError."""
        for path in entries(self._folder):
            if path.suffix != _BATCH:
                if path.stem not in keys:
                    remove(path)
                continue
            every = _LINE.findall(regular.read(path))
            left = [(key, envelope) for key, envelope in every if key.decode() in keys]
            if not left:
                remove(path)
            elif len(left) < len(every):
                # Under a new name: other processes know where the envelopes of the old one begin.
                name = f"{path.name.partition('.')[0]}.{len(left)}{_BATCH}"
                self._write(f"{self._folder}/{name}", b"".join(b"%s %s" % line for line in left))
                remove(path)
        self._read.clear()
        self._places.clear()

    def _file(self, key: Digest) -> str:
        return f"{self._folder}/{key}.json"

    def _written(self, path: str, content: bytes) -> None:
        self._folder.mkdir(exist_ok=True)
        self._write(path, content)

    def _look(self) -> None:
        """Read the batches that are new, the oldest first."""
        for path in entries(self._folder):
            if path.suffix == _BATCH and path.name not in self._read:
                self._read.add(path.name)
                with contextlib.suppress(OSError):
                    lines = _LINE.finditer(regular.read(path))
                    self._places |= {line[1].decode(): (path.name, *line.span(2)) for line in lines}
