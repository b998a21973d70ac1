"""The file system of a path: whether its time stamps show every change, and since when it is mounted."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.store import overlays
from engine.system import mount_numbers, regular

_TELLING = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs"}
"""File systems for which the kernel sets the change time at every write, rename and link, also after an `mmap`.

The set leaves out:

- network, FUSE and FAT file systems, because the writes of another machine may show late there, or leave the change
  time as it was;
- tmpfs and ramfs, because a write through a mapping leaves all times as they were;
- erofs and iso9660, because another image may have other content and equal time stamps;
- overlay, because its layers may be any of these: `engine.store.overlays` tries the layer that is written to.
"""
_OVERLAY = "overlay"
_SQUASHFS = "squashfs"
"""A read-only image. Its files change only by the mount of another image, which has another number."""
_NUMBERED = {_OVERLAY, _SQUASHFS}
"""File systems that are believed for as long as they stay mounted: the number of the mount tells."""
_DRIVERS = {"ext2": "ext4", "ext3": "ext4"}
"""The folder in /sys/fs of a kind of file system, where it has another name than the kind."""
_WHOLE_FILE_AND_WAIT = 7
"""The flags of sync_file_range(2): wait for writes under way, write all changed pages, and wait for these writes."""


@dataclass(frozen=True)
class Mount:
    """A line of the table of mounts: the kind of the file system, and its device number as `os.stat` has it."""

    kind: str
    device: int
    point: str = "/"

    @property
    def tells_changes(self) -> bool:
        """Whether an equal stat row proves that a file is unchanged."""
        if self.kind == _OVERLAY:
            return overlays.tells_changes(self.point, _point_of)
        if self.kind == _SQUASHFS:
            return mount_numbers.of(self.point) is not None
        return self.kind in _TELLING

    @property
    def number(self) -> int:
        """A number that another mount of the file system changes; 0 where the kernel has no such number."""
        if self.kind in _NUMBERED:
            return mount_numbers.of(self.point) or 0
        try:
            return os.stat(self.folder).st_ino  # the kernel gives each folder of /sys a number of its own
        except OSError:
            return 0

    @property
    def folder(self) -> str:
        """The folder in /sys/fs of the mounted file system, which another folder replaces at the next mount."""
        device = os.path.realpath(f"/sys/dev/block/{os.major(self.device)}:{os.minor(self.device)}")
        return f"/sys/fs/{_DRIVERS.get(self.kind, self.kind)}/{os.path.basename(device)}"


def tells_changes(path: str | Path) -> bool:
    """Say whether an equal stat row proves that the file at `path` is unchanged."""
    # macOS has no list of mounts to read; its own disks (APFS, HFS+) keep change times.
    if sys.platform == "darwin":
        return True
    device = _device(path)
    mount = _mount_of_device(device, str(path))
    # Some files of an overlay have the device number of a layer, which says nothing about the layer.
    return mount.tells_changes and (mount.kind != _OVERLAY or mount.device == device)


def kind_of(path: str | Path) -> str:
    """Return the kind of a path's file system, as Linux names it; "unknown" where the system does not tell."""
    return mount_of(path).kind


def mount_of(path: str | Path) -> Mount:
    """Return the mount that holds the file at `path`, after links are followed."""
    place = os.path.realpath(path)
    while place not in _mounts():
        parent = os.path.dirname(place)
        if parent == place:
            return Mount("unknown", 0)
        place = parent
    return _mounts()[place]


def mount_folder(path: str | Path) -> str | None:
    """Return the folder in /sys/fs of the file system at `path`; None where the kernel has no such folder."""
    folder = _mount_of_device(_device(path), str(path)).folder
    return folder if os.path.isdir(folder) else None


def mount_number(path: str | Path) -> tuple[str, int] | None:
    """Return the mount point and the number of the overlay or squashfs at `path`; None for other file systems."""
    mount = _mount_of_device(_device(path), str(path))
    return (mount.point, mount.number) if mount.kind in _NUMBERED else None


def mounted(device: int) -> str | None:
    """Return a text that another mount of the device changes; None for a device that is not in the table of mounts.

    The text begins with the identity of the boot and a slash.
    """
    mount = next((each for each in _mounts().values() if each.device == device), None)
    return None if mount is None else f"{_boot()}/{mount.kind}/{mount.number}"


def write_back(path: str | Path) -> bool:
    """Write the changed pages of a file to its disk; say whether that worked. Raises OSError for a missing file.

    The first write to a page through a mapping sets the file's times. Later writes to the page leave the times as they
    are, until the page was written to the disk. After `write_back`, the next write sets the times again.
    """
    with regular.open_file(path) as file:
        handle = file.fileno()
        kind = _mount_of_device(os.fstat(handle).st_dev, str(path)).kind
        if kind == _SQUASHFS:
            return True
        # On an overlay, sync_file_range has no effect: the pages belong to a file of the upper layer.
        if sys.platform != "linux" or kind == _OVERLAY:
            os.fsync(handle)
            return True
        import ctypes

        everything = (ctypes.c_int64(0), ctypes.c_int64(0), ctypes.c_uint(_WHOLE_FILE_AND_WAIT))
        return bool(ctypes.CDLL(None).sync_file_range(ctypes.c_int(handle), *everything) == 0)


def _point_of(path: str) -> str:
    return mount_of(path).point


def _device(path: str | Path) -> int:
    try:
        return os.stat(path).st_dev
    except OSError:
        return 0


_by_device: dict[int, Mount] = {}


def _mount_of_device(device: int, path: str) -> Mount:
    """Return the mount of a path; all files with one device number are on one file system."""
    if device not in _by_device or not device:
        _by_device[device] = mount_of(path)
    return _by_device[device]


@cache
def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


@cache
def _mounts() -> dict[str, Mount]:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return table_of(file.read())
    except OSError:
        return {}


def table_of(text: str) -> dict[str, Mount]:
    """Return a mapping from each mount point to its mount; proc(5) describes the text of mountinfo.

    If two file systems have one mount point, the one that was mounted later counts.
    """
    mounts = {}
    for line in text.splitlines():
        fields, _, rest = line.partition(" - ")
        device, place = fields.split(" ")[2], fields.split(" ")[4]
        for code, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
            place = place.replace(code, letter)
        major, _, minor = device.partition(":")
        mounts[place] = Mount(rest.split(" ", 1)[0], os.makedev(int(major), int(minor)), place)
    return mounts
