"""Ledgers: files with a line for each key, of the envelopes of records and of what remotes have."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Container, Mapping
from pathlib import Path

from engine.digest import Digest
from engine.store.disk import entries, remove
from engine.system import regular

_LINE = re.compile(rb"^([0-9a-f]{32}) ?((?:\{.*\})?\n)", re.MULTILINE)
"""A line: the digest of a record's key, and a value, which is one line of JSON, or none."""
_CUT = b"-\n"
"""What each addition begins with. It ends a line that a power cut tore, so that the torn line is no line."""
_SINGLE = ".json"
"""The suffix of a file with the value of one key, as earlier versions wrote them."""


class Ledger:
    """The ledgers of a folder. A file for each record would cost more than the push of a small record.

    Programs that add lines keep collections out meanwhile (`Store.adding`).
    """

    def __init__(self, folder: Path, write: Callable[[Path, bytes], None]) -> None:
        """`write` replaces a file in one step."""
        self._folder = folder
        self._write = write
        self._known: dict[str, tuple[int, int, dict[bytes, tuple[int, int]]]] = {}
        """The name of a ledger -> its inode, the end of its known lines, and start and size of each key's line."""

    def has(self, key: Digest, name: str) -> bool:
        """Say whether a ledger has a line for a key."""
        return self._value(key, name) is not None

    def read(self, key: Digest) -> bytes | None:
        """Return the value of the newest line of a key in any ledger; None without one."""
        for path in reversed(entries(self._folder)):  # earlier versions began a ledger for each push, named by the time
            value = self._value(key, path.name) if path.suffix != _SINGLE else None
            if value is not None:
                return value
        with contextlib.suppress(OSError):
            return regular.read(self._folder / f"{key}{_SINGLE}")
        return None

    def _value(self, key: Digest, name: str) -> bytes | None:
        with contextlib.suppress(KeyError, OSError), regular.open_file(self._folder / name) as file:
            inode = os.fstat(file.fileno()).st_ino
            before, end, lines = self._known.get(name, (inode, 0, {}))
            if before != inode:  # a collection has written the ledger anew
                end, lines = 0, {}
            file.seek(end)
            start = end
            for line in _LINE.finditer(file.readall()):
                end = start + line.end()
                lines[line[1]] = start + line.start(), line.end() - line.start()
            self._known[name] = inode, end, lines
            at, size = lines[key.encode()]
            file.seek(at)
            match = _LINE.fullmatch(file.read(size))
            return match[2] if match is not None and match[1] == key.encode() else None
        return None

    def add(self, lines: Mapping[Digest, bytes], name: str) -> None:
        """Add lines to the end of a ledger. Raises OSError."""
        if not lines:
            return
        self._folder.mkdir(exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self._folder / name, flags, 0o644)
        try:
            left = memoryview(_CUT + _text_of({key.encode(): value for key, value in lines.items()}))
            while left:
                left = left[os.write(handle, left) :]
        finally:
            os.close(handle)

    def forget_all_but(self, keys: Container[str]) -> None:
        """Remove the lines of other keys. The caller holds the gate alone. Raises OSError, StoreError."""
        for path in entries(self._folder):
            if path.suffix == _SINGLE:
                if path.stem not in keys:
                    remove(path)
                continue
            every = _LINE.findall(regular.read(path))
            left = {key: value for key, value in every if key.decode() in keys}
            if not left:
                remove(path)
            elif len(left) < len(every):
                self._write(path, _text_of(left))


def _text_of(lines: Mapping[bytes, bytes]) -> bytes:
    return b"".join(b" ".join((key, *value.splitlines())).rstrip() + b"\n" for key, value in lines.items())
