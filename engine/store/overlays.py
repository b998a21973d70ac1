"""Overlay file systems, which containers use: whether the upper layer tells of every change, by an experiment."""

# A container does not show what the layers of its overlay are. The upper layer, to which all writes go, is tried. The
# lower layers do not change while they are mounted, and another mount has another number (engine.system.mount_numbers).

from __future__ import annotations

import mmap
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache

from engine.system import mount_numbers

_PAUSE_SECONDS = 0.02
"""Longer than a tick of the kernel's clock, so that two changes get different change times."""
_FOLDERS = ("/tmp", "/var/tmp", "~")  # noqa: S108 - each place is only tried, with a file of a random name


@cache
def tells_changes(mount_point: str, mount_of: Callable[[str], str]) -> bool:
    """Say whether time stamps show every change on an overlay that is mounted at `mount_point`.

    `mount_of(path)` returns the mount point of a path. The answer is False if the kernel has no numbers of mounts, or
    if no folder of the overlay can be written to for the experiment.
    """
    if mount_numbers.of(mount_point) is None:
        return False
    for folder in _folders():
        if mount_of(folder) == mount_point:
            try:
                return _tells_of_mapped_writes(folder)
            except OSError:
                continue
    return False


def _folders() -> Iterator[str]:
    """Yield folders that programs may write temporary files to, and that no build watches."""
    yield from dict.fromkeys(map(os.path.expanduser, (tempfile.gettempdir(), *_FOLDERS)))


def _tells_of_mapped_writes(folder: str) -> bool:
    """Say whether a write through a mapping, to a page that is already mapped, sets the change time of a file.

    On ext4 and xfs, `fsync` makes the next write to the page set the change time. On tmpfs, nothing does.
    Raises OSError for a folder that cannot be written to.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(mmap.PAGESIZE)
        with mmap.mmap(file.fileno(), mmap.PAGESIZE) as mapping:
            mapping[0] = 1
            os.fsync(file.fileno())
            before = os.fstat(file.fileno()).st_ctime_ns
            time.sleep(_PAUSE_SECONDS)
            mapping[0] = 2
            return os.fstat(file.fileno()).st_ctime_ns > before
