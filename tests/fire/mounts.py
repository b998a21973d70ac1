"""Disks of a test's own: small ones, full ones, read-only ones, in a mount namespace that nobody else sees."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_CLONE_NEWNS = 0x00020000
"""unshare(2), setns(2): mounts."""


@contextlib.contextmanager
def own_mounts() -> Iterator[None]:
    """Let this thread, and what it starts from here on, have mounts of its own. Skips where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY)
    where = os.getcwd()
    try:
        if libc.unshare(_CLONE_NEWNS):
            pytest.skip(f"mounts of one's own need root: {os.strerror(ctypes.get_errno())}")
        _mount("--make-rprivate", "/")
        yield
    finally:
        libc.setns(before, _CLONE_NEWNS)
        os.close(before)
        os.chdir(where)


class Disk:
    """A tmpfs that is as large as a test wants it to be."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "-o", "size=64m", "fire", str(place))

    def limit(self, *, free: int | None = None, inodes: int | None = None) -> None:
        """Leave so many bytes, and so many inodes, beyond what is used; None for plenty."""
        status = os.statvfs(self.place)
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        size = used + free if free is not None else 64 << 20
        count = status.f_files - status.f_ffree + inodes if inodes is not None else 100_000
        # Of a size of 0 or a number of 0 the kernel takes there to be no limit.
        _mount("-o", f"remount,size={max(size, 4096)},nr_inodes={max(count, 1)}", str(self.place))

    def read_only(self) -> None:
        _mount("-o", "remount,ro", str(self.place))

    def remove(self) -> None:
        subprocess.run(["umount", str(self.place)], check=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)
