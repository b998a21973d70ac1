"""File systems: whether the time stamps of files show every change, and what is mounted when (Linux)."""

# A no-op build on an overlay or a squashfs imports this module, so the module imports little.

from __future__ import annotations

import os
import sys

from engine.system import regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select
    from collections.abc import Sequence
    from pathlib import Path

_TELLING = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs"}
"""File systems for which the kernel sets the change time at every write, rename and link, also after an `mmap`.

The set leaves out:

- network, FUSE and FAT file systems, because the writes of another machine may show late there, or leave the change
  time as it was;
- tmpfs and ramfs, because a write through a mapping leaves all times as they were;
- erofs and iso9660, because another image may have other content and equal time stamps.
"""
_OVERLAY = "overlay"
"""Its layers may be any file systems, and a container does not show them. The upper layer, which is written to, is
tried. The lower layers do not change while they are mounted, and another mount has another number."""
_SQUASHFS = "squashfs"
"""A read-only image. Its files change only by the mount of another image, which has another number."""
_DRIVERS = {"ext2": "ext4", "ext3": "ext4"}
"""The folder in /sys/fs of a kind of file system, where it has another name than the kind."""
_TABLE = "/proc/self/mountinfo"
_FROM_HERE, _UNIQUE, _STATX_BYTES, _NUMBER = -100, 0x4000, 256, slice(0x90, 0x98)
"""Of statx(2): AT_FDCWD, STATX_MNT_ID_UNIQUE (since Linux 6.8), the size of its answer, the place of `stx_mnt_id`."""
_WHOLE_FILE_AND_WAIT = 7
"""The flags of sync_file_range(2): wait for writes under way, write all changed pages, and wait for these writes."""
_PAUSE_SECONDS = 0.02
"""Longer than a tick of the kernel's clock, so that two changes get different change times."""
UNSEEN = "a mount"
"""Stands for the place of a mount that came and went before this process could look."""

Mount = tuple[str, int, str]
"""The kind of a mounted file system, its device number as `os.stat` has it, and the mount point."""


def tells_changes(path: str | Path) -> bool:
    """Say whether an equal stat row proves that the file at `path` is unchanged."""
    # macOS has no list of mounts to read; its own disks (APFS, HFS+) keep change times.
    if sys.platform == "darwin":
        return True
    device = _device(path)
    kind, mounted_device, point = _mount_of_device(device, path)
    if kind == _OVERLAY:  # some of its files have the device number of a layer, which says nothing about the layer
        return mounted_device == device and _tells_of_mapped_writes(point)
    return kind in _TELLING or (kind == _SQUASHFS and unique_number(point) is not None)


def kind_of(path: str | Path) -> str:
    """Return the kind of a path's file system, as Linux names it; "unknown" where the system does not tell."""
    return _mount_of(path)[0]


def mount_folder(path: str | Path) -> str | None:
    """Return the folder in /sys/fs of the file system at `path`; None where the kernel has no such folder."""
    folder = _folder(_mount_of_device(_device(path), path))
    return folder if os.path.isdir(folder) else None


def mount_number(path: str | Path) -> tuple[str, int] | None:
    """Return the mount point and the number of the overlay or squashfs at `path`; None for other file systems."""
    mount = _mount_of_device(_device(path), path)
    return (mount[2], _number(mount)) if mount[0] in (_OVERLAY, _SQUASHFS) else None


def mounted(device: int) -> str | None:
    """Return a text that another mount of the device changes; None for a device that is not in the table of mounts.

    The text begins with the identity of the boot and a slash.
    """
    mount = next((each for each in _mounts().values() if each[1] == device), None)
    return None if mount is None else f"{_boot()}/{mount[0]}/{_number(mount)}"


def unique_number(path: str) -> int | None:
    """Return the kernel's number of the mount at `path`, which no other mount gets until the machine restarts.

    None where the kernel gives no such numbers.
    """
    import ctypes  # slow to import

    answer = ctypes.create_string_buffer(_STATX_BYTES)
    try:
        failed = ctypes.CDLL(None).statx(_FROM_HERE, os.fsencode(path), 0, _UNIQUE, answer)
    except AttributeError:  # a C library without statx
        return None
    if failed or not int.from_bytes(answer.raw[:4], "little") & _UNIQUE:
        return None
    return int.from_bytes(answer.raw[_NUMBER], "little")


def write_back(path: str | Path) -> bool:
    """Write the changed pages of a file to its disk; say whether that worked. Raises OSError for a missing file.

    The first write to a page through a mapping sets the file's times. Later writes to the page leave the times as they
    are, until the page was written to the disk. After `write_back`, the next write sets the times again.
    """
    with regular.open_file(path) as file:
        handle = file.fileno()
        kind = _mount_of_device(os.fstat(handle).st_dev, path)[0]
        if kind == _SQUASHFS:
            return True
        # On an overlay, sync_file_range has no effect: the pages belong to a file of the upper layer.
        if sys.platform != "linux" or kind == _OVERLAY:
            os.fsync(handle)
            return True
        import ctypes

        everything = (ctypes.c_int64(0), ctypes.c_int64(0), ctypes.c_uint(_WHOLE_FILE_AND_WAIT))
        return bool(ctypes.CDLL(None).sync_file_range(ctypes.c_int(handle), *everything) == 0)


class MountEvents:
    """The places at which something was mounted or unmounted since the object was made.

    The kernel tells when its table of mounts changes: poll(2) of the table returns POLLPRI, see proc(5). A look then
    compares the table with the one before. On a system without such a table, no place is ever noted.
    """

    def __init__(self) -> None:
        import select

        self._places: list[str] = []
        self._lines: frozenset[str] = frozenset()
        self._changes: select.epoll | None = None
        try:
            self._table = open(_TABLE, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115 - closed by `close`
            self._changes = select.epoll()
            self._changes.register(self._table, select.EPOLLPRI)
            self._lines = self._read()
        except (OSError, AttributeError):  # only Linux has the table and `select.epoll`
            return

    @property
    def descriptor(self) -> int | None:
        """A file descriptor that is ready for reading when the table has changed; None without a table."""
        return None if self._changes is None else self._changes.fileno()

    @property
    def count(self) -> int:
        """The number of places that were noted so far."""
        return len(self._places)

    def after(self, count: int) -> Sequence[str]:
        """Return the places that were noted after the first `count`."""
        self.look()
        return self._places[count:]

    def look(self, *, is_changed: bool = False) -> None:
        """Note what has changed. `is_changed` says that the descriptor was ready: the kernel tells each change once."""
        if self._changes is None or not (self._changes.poll(0) or is_changed):
            return
        lines = self._read()
        self._places += _table_of("\n".join(lines ^ self._lines)) or [UNSEEN]
        self._lines = lines

    def close(self) -> None:
        """Close the table."""
        if self._changes is not None:
            self._changes.close()
            self._table.close()
            self._changes = None

    def _read(self) -> frozenset[str]:
        self._table.seek(0)
        return frozenset(self._table.read().splitlines())


_tried: dict[str, bool] = {}
"""What the experiment showed for the overlay at each mount point."""


def _tells_of_mapped_writes(point: str) -> bool:
    """Say whether a write through a mapping, to a page that is mapped already, sets the change time on an overlay.

    On ext4 and xfs, `fsync` makes the next write to the page set the change time. On tmpfs, nothing does. The answer is
    False if the kernel has no numbers of mounts, or if no folder for temporary files on the overlay can be written to.
    """
    if point not in _tried:
        _tried[point] = _try_mapped_writes(point)
    return _tried[point]


def _try_mapped_writes(point: str) -> bool:
    import mmap
    import tempfile
    import time

    if unique_number(point) is None:
        return False
    for folder in map(os.path.expanduser, (tempfile.gettempdir(), "/tmp", "/var/tmp", "~")):  # noqa: S108 - tried only
        if _mount_of(folder)[2] == point:
            try:
                with tempfile.TemporaryFile(dir=folder) as file:
                    file.truncate(mmap.PAGESIZE)
                    with mmap.mmap(file.fileno(), mmap.PAGESIZE) as mapping:
                        mapping[0] = 1
                        os.fsync(file.fileno())
                        before = os.fstat(file.fileno()).st_ctime_ns
                        time.sleep(_PAUSE_SECONDS)
                        mapping[0] = 2
                        return os.fstat(file.fileno()).st_ctime_ns > before
            except OSError:
                continue
    return False


def _folder(mount: Mount) -> str:
    """Return the folder in /sys/fs of a mounted file system, which another folder replaces at the next mount."""
    kind, device, _ = mount
    disk = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    return f"/sys/fs/{_DRIVERS.get(kind, kind)}/{os.path.basename(disk)}"


def _number(mount: Mount) -> int:
    """Return a number that another mount of the file system changes; 0 where the kernel has no such number."""
    if mount[0] in (_OVERLAY, _SQUASHFS):
        return unique_number(mount[2]) or 0
    try:
        return os.stat(_folder(mount)).st_ino  # the kernel gives each folder of /sys a number of its own
    except OSError:
        return 0


def _device(path: str | Path) -> int:
    try:
        return os.stat(path).st_dev
    except OSError:
        return 0


_by_device: dict[int, Mount] = {}


def _mount_of_device(device: int, path: str | Path) -> Mount:
    """Return the mount of a path; all files with one device number are on one file system."""
    if device not in _by_device or not device:
        _by_device[device] = _mount_of(path)
    return _by_device[device]


def _mount_of(path: str | Path) -> Mount:
    """Return the mount that holds the file at `path`, after links are followed."""
    place = os.path.realpath(path)
    while place not in _mounts():
        if place == os.path.dirname(place):
            return "unknown", 0, "/"
        place = os.path.dirname(place)
    return _mounts()[place]


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


_by_point: dict[str, Mount] = {}


def _mounts() -> dict[str, Mount]:
    """Return the table of mounts as it was when this process first asked."""
    if not _by_point:
        try:
            with open(_TABLE, encoding="utf-8", errors="surrogateescape") as file:
                _by_point.update(_table_of(file.read()))
        except OSError:
            return {}
    return _by_point


def _table_of(text: str) -> dict[str, Mount]:
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
        mounts[place] = rest.split(" ", 1)[0], os.makedev(int(major), int(minor)), place
    return mounts
