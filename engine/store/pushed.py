"""Which records a store has pushed: a file for each remote, to which a line is added for each record."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.system import regular

_KEY = re.compile(rb"^[0-9a-f]{32}$", re.MULTILINE)
_SUFFIX = ".list"


class Pushed:
    """The keys of the records that remotes have, as far as this store knows.

    A file for each record and remote would cost more than the push of a small record. A line that a power cut tore is
    no key, and its record is pushed again.
    """

    def __init__(self, folder: Path, write: Callable[[Path, bytes], None]) -> None:
        """`write` replaces a file in one step."""
        self._folder = folder
        self._write = write
        self._known: dict[str, tuple[int, set[bytes]]] = {}
        """By remote: the size of the file, and its keys."""

    def has(self, key: Digest, remote: str) -> bool:
        """Say whether this store has pushed the record of a key to a remote."""
        path = self._path(remote)
        try:
            size = os.stat(path).st_size
            known = self._known.get(remote)
            if known is None or known[0] != size:
                content = regular.read(path)
                known = self._known[remote] = len(content), set(_KEY.findall(content))
        except OSError:
            return False
        return key.encode() in known[1]

    def add(self, keys: Iterable[Digest], remote: str) -> None:
        """Note that a remote has the records of these keys. Raises OSError."""
        # The first line ends one that a power cut left without its end.
        lines = b"\n".join((b"", *(key.encode() for key in keys), b""))
        handle = os.open(
            self._path(remote), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
        )
        try:
            os.write(handle, lines)
        finally:
            os.close(handle)

    def forget_all_but(self, keys: Container[str]) -> None:
        """Remove the lines of other keys. Raises OSError, StoreError."""
        for path in self._folder.glob(f"*{_SUFFIX}"):
            every = _KEY.findall(regular.read(path))
            left = [key for key in dict.fromkeys(every) if key.decode() in keys]
            if len(left) < len(every):
                self._write(path, b"".join(key + b"\n" for key in left))

    def _path(self, remote: str) -> Path:
        return self._folder / f"{digest.of_bytes(remote.encode())}{_SUFFIX}"
