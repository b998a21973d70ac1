"""Disks of a test's own, in a mount namespace that nobody else sees: small, full, read-only, on a loop device."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_CLONE_NEWNS = 0x00020000
"""unshare(2), setns(2): mounts."""
_MAKERS = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "squashfs": ("mksquashfs",),
    "erofs": ("mkfs.erofs",),
    "iso9660": ("xorriso", "-as", "mkisofs"),
}
"""The program that makes a file system of a kind, with its first words."""
_MEGABYTES = {"ext4": 64, "xfs": 320}
"""The size of a new file system; no xfs is smaller."""


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


class LoopDisk:
    """A real file system in a file, on a loop device. A test may copy the file, or put another in its place."""

    def __init__(self, kind: str, image: Path, place: Path) -> None:
        """Mount the image of a file system of this kind."""
        self.kind = kind
        self.image = image
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        self.mount()

    def mount(self) -> None:
        _mount("-t", self.kind, "-o", "loop", str(self.image), str(self.place))

    def remove(self) -> None:
        """Take the mount away; the image stays, and can be mounted again."""
        subprocess.run(["umount", str(self.place)], check=True)


def new_disk(kind: str, folder: Path) -> LoopDisk:
    """Return an empty, mounted ext4 or xfs. Skips where this is not possible."""
    need(kind)
    image = folder / f"{kind}.image"
    with image.open("wb") as file:
        file.truncate(_MEGABYTES[kind] << 20)
    _run(*_MAKERS[kind], str(image))
    return LoopDisk(kind, image, folder / f"{kind}-disk")


def image_of(kind: str, content: Path, image: Path, *make: str) -> Path:
    """Write a squashfs, erofs or iso9660 of what a folder holds. Skips where this is not possible."""
    need(kind)
    image.unlink(missing_ok=True)
    words = {
        "squashfs": (str(content), str(image), "-noappend", "-quiet", "-no-progress", *make),
        "erofs": (*make, str(image), str(content)),
        "iso9660": ("-quiet", "-R", *make, "-o", str(image), str(content)),
    }
    _run(*_MAKERS[kind], *words[kind])
    return image


def need(kind: str) -> None:
    """Skip the test, and say why, where this machine cannot make and mount file systems of a kind."""
    program = _MAKERS.get(kind, ("mount",))[0]
    if shutil.which(program) is None:
        pytest.skip(f"a file system {kind} needs the program {program}, which is not installed")
    known = {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}
    if (
        kind not in known
        and subprocess.run(f"modprobe {kind}", shell=True, capture_output=True, check=False).returncode
    ):
        pytest.skip(f"this kernel has no file system {kind}")
    if kind in _MAKERS and not os.path.exists("/dev/loop-control"):
        pytest.skip(f"a file system {kind} needs a loop device, and this machine has none")


def _mount(*words: str) -> None:
    _run("mount", *words)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
