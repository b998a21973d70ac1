"""The file system of a path, and whether its time stamps show every change."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

_TELLING = {
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "tmpfs", "ramfs", "overlay",
    "squashfs", "erofs", "iso9660",
}  # fmt: skip
"""File systems for which the kernel sets the change time at every write, rename and link.

The set leaves out network, FUSE and FAT file systems, because the writes of another machine may show late there, or
leave the change time as it was.
"""


def tells_changes(path: str | Path) -> bool:
    """Say whether an equal stat row proves that the file at `path` is unchanged."""
    return _tells(os.path.dirname(os.path.abspath(path)))


def kind_of(folder: str | Path) -> str:
    """Return the type of a folder's file system, as Linux names it; "unknown" where the system does not tell."""
    place = os.path.realpath(folder)
    while True:
        if place in _mounts():
            return _mounts()[place]
        parent = os.path.dirname(place)
        if parent == place:
            return "unknown"
        place = parent


@cache
def _tells(folder: str) -> bool:
    # macOS has no list of mounts to read; its own disks (APFS, HFS+) keep change times.
    return sys.platform == "darwin" or kind_of(folder) in _TELLING


@cache
def _mounts() -> dict[str, str]:
    """Return a mapping from each mount point to the type of its file system, as proc(5) describes mountinfo.

    If two file systems have one mount point, the one that was mounted later counts.
    """
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    mounts = {}
    for line in lines:
        fields, _, rest = line.partition(" - ")
        place = fields.split(" ")[4]
        for code, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
            place = place.replace(code, letter)
        mounts[place] = rest.split(" ", 1)[0]
    return mounts
