"""The number that the kernel gives to each mount: no other mount gets the number until the machine restarts."""

# An up-to-date build imports this module, so the module imports only what Python has loaded already.

from __future__ import annotations

import os

_FROM_HERE = -100
"""AT_FDCWD of statx(2): a relative path starts at the working directory."""
_UNIQUE = 0x4000
"""STATX_MNT_ID_UNIQUE of statx(2), since Linux 6.8."""
_BYTES = 256
_NUMBER = slice(0x90, 0x98)
"""The size of `struct statx`, and the place of its field `stx_mnt_id`, as in linux/stat.h."""


def of(path: str | os.PathLike[str]) -> int | None:
    """Return the number of the mount that holds the file at `path`; None where the kernel gives no such numbers."""
    import ctypes  # slow to import: only a build on an overlay needs the numbers

    answer = ctypes.create_string_buffer(_BYTES)
    try:
        failed = ctypes.CDLL(None).statx(_FROM_HERE, os.fsencode(path), 0, _UNIQUE, answer)
    except AttributeError:  # a C library without statx
        return None
    if failed or not int.from_bytes(answer.raw[:4], "little") & _UNIQUE:
        return None
    return int.from_bytes(answer.raw[_NUMBER], "little")
