"""Snapshots of finished builds: a build in which nothing changed is answered from its snapshot, before slow imports."""

from __future__ import annotations

import marshal
import os
import sys
import time
from _operator import attrgetter
from zlib import crc32

from engine.recipe import path_ways
from engine.seal import Seal
from engine.system import own_stores, regular, streams, watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from engine.recipe.path_ways import Mark
    from engine.system.watched import Row


FORMAT = 13
_VALUED = {"-j", "--jobs"}
_PARANOID = "--paranoid"
"""The option of a build that reads every file: no snapshot answers it, but it keeps a snapshot for other builds."""
_QUIET, _VERBOSE = {"-q", "--quiet"}, {"-v", "--verbose"}
_FLAGS = {"--json", _PARANOID, *_QUIET, *_VERBOSE}
"""Options of the command line that do not change the result of a build."""
_DIGEST_BYTES = 16
_CAPABILITIES = "/proc/driver/nvidia/capabilities"
"""The folder in which NVIDIA's driver lists the MIG slices of each GPU; absent on a machine without the driver."""
_place = attrgetter("st_dev", "st_ino")
UNREADABLE = (OSError, ValueError, EOFError, TypeError, KeyError)
"""The errors that reading a missing, damaged or older snapshot may raise."""


def answer(argv: Sequence[str]) -> int | ChangedFiles | None:
    """Print the output of an up-to-date build and return its exit code.

    If only the content of watched files has changed, return the ChangedFiles that names the files. In all other cases,
    for example for another environment, return None.
    """
    changes = compare(argv)
    if changes is None or changes.names:
        return changes
    snapshot = changes.snapshot
    try:
        os.utime(changes.path)  # the time of the last use, for collection
    except OSError:
        return None
    seconds = f"{time.perf_counter() - changes.started:.3f}"
    json = "--json" in argv
    quiet, brief = not _QUIET.isdisjoint(argv), _VERBOSE.isdisjoint(argv)
    if not json and not quiet:
        sys.stderr.write(snapshot["brief_talk" if brief else "talk"].replace("\0", seconds))
        sys.stderr.flush()
    data = "json" if json else "packages" if quiet else "brief_data" if brief else "data"
    streams.write_last(snapshot[data].replace("\0", seconds))
    return int(snapshot["exit"])


class ChangedFiles:
    """A snapshot and the files whose stat rows differ from it. Everything else is as the snapshot says."""

    def __init__(self, path: str, snapshot: Mapping[str, Any], names: Sequence[str], started: float) -> None:
        """`started` is the time at which the comparison began, from `time.perf_counter`."""
        self.path = path
        self.snapshot = snapshot
        self.names = names
        self.started = started


def compare(argv: Sequence[str]) -> ChangedFiles | None:
    """Compare the snapshot of a command line with the files of today.

    Returns None without a readable snapshot, and where more than the content of files is different.
    """
    started = time.perf_counter()
    path = None if _PARANOID in argv else path_of(argv)
    if path is None or not own_stores.is_own(os.path.dirname(os.path.dirname(path))):
        return None
    try:
        snapshot = read(path)
        if snapshot["identity"] != _identity(argv, snapshot["variables"], os.environ) or not _stands(snapshot):
            return None
        return ChangedFiles(path, snapshot, watched.changed(*snapshot["watched"]), started)
    except UNREADABLE:
        return None


def stated(
    argv: Sequence[str],
    *,
    rows: Mapping[str, Row],
    absent: Iterable[str],
    notes: Iterable[str],
    way: Mapping[str, Mark],
    roots: Mapping[str, str],
    mounts: Mapping[str, int],
    variables: Iterable[str] | None,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    """Return what the snapshot of a build compares; what it prints comes beside that.

    `rows` are the stat rows of the files that the build read and wrote, `absent` files that must not appear. `notes`
    are files about this build that other builds may change, so each note only needs to exist: the next build writes a
    missing note. `way` holds the folders and links on the way to the paths in recipes, with the marks that they had
    when the plan was made. `roots` maps the path of each recipe to the root of the recipe's project. `mounts` maps the
    mount point of each overlay and squashfs to the number of the mount.

    `variables` names the environment variables that the build depends on; None stands for all variables. `environment`
    has the variables as they were when the plan was made.
    """
    names = None if variables is None else sorted(set(variables))
    return {
        "identity": _identity(argv, names, environment),
        "variables": names,
        "watched": watched.packed(rows),
        "absent": sorted(absent),
        "notes": sorted(notes),
        "way": dict(way),
        "roots": dict(roots),
        "mounts": dict(mounts),
    }


def path_of(argv: Sequence[str]) -> str | None:
    """Return the path of a command line's snapshot; None for a command line without a recipe."""
    from engine.recipe.project import cache_of

    words = _essential(argv)
    cache = os.environ.get("RECIPE_CACHE")
    recipe = None
    for index, word in enumerate(words):
        if word == "--cache" and index + 1 < len(words):
            cache = words[index + 1]
        elif word.startswith("--cache="):
            cache = word[len("--cache=") :]
        elif recipe is None and word.endswith((".yaml", ".yml")):
            recipe = word
    if recipe is None:
        return None
    folder = cache or cache_of(recipe)
    name = crc32("\0".join([os.getcwd(), *words]).encode("utf-8", "surrogateescape"))
    return os.path.join(folder, "snapshots", f"{name:08x}")


def sealed(path: str, content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a snapshot's file, or of a plan's file, for the path `path`: texts without secrets."""
    from engine.text.redaction import redacted

    clean = {name: redacted(value) if isinstance(value, str) else value for name, value in content.items()}
    return _SEAL.close(marshal.dumps(clean), _place_of(path))


def read(path: str) -> Mapping[str, Any]:
    """Return the content of a file that `sealed` made. Raises an error of UNREADABLE."""
    raw = regular.read(path)
    snapshot: Mapping[str, Any] = marshal.loads(_SEAL.open(raw, _place_of(path)))  # noqa: S302 - our own file, in the user's own cache
    return snapshot


def _place_of(path: str) -> bytes:
    """Return the file name of a snapshot as bytes: the snapshot's seal covers the file name and the content."""
    return os.path.basename(path).encode()


def _checksum(place: bytes, content: bytes | memoryview) -> bytes:
    """Return the CRC-32 of a file name and a content.

    CRC-32 is used because importing `zlib` takes less time than importing the library of the xxh3 digest, which other
    seals have.
    """
    return crc32(content, crc32(place)).to_bytes(_CHECKSUM_BYTES, "little")


_CHECKSUM_BYTES = 4
_SEAL = Seal(_checksum, length=_CHECKSUM_BYTES)


def _stands(snapshot: Mapping[str, Any]) -> bool:
    """Say whether a build would find the files of the snapshot at the same places, whatever the files contain."""
    from engine.recipe.project import root_of

    return (
        path_ways.holds(snapshot["way"])
        and _is_mounted(snapshot["mounts"])
        and all(root_of(recipe) == root for recipe, root in snapshot["roots"].items())
        and not any(map(os.path.exists, snapshot["absent"]))
        and all(map(os.path.exists, snapshot["notes"]))
    )


def _is_mounted(mounts: Mapping[str, int]) -> bool:
    """Say whether each overlay and squashfs still has the number that it had; most snapshots have none."""
    if not mounts:
        return True
    from engine.system.file_systems import unique_number

    return all(unique_number(point) == number for point, number in mounts.items())


def _identity(argv: Sequence[str], variables: Iterable[str] | None, environment: Mapping[str, str]) -> tuple[Any, ...]:
    """Return what a plan depends on, except the content of files: the command line, the folder, the environment."""
    return (
        FORMAT,
        _digest_of(_essential(argv)),
        os.getcwd(),
        _values_of(variables, environment),
        sys.prefix,
        _machine(),
        sys.version,
        tuple(sys.path),
    )


def _values_of(variables: Iterable[str] | None, environment: Mapping[str, str]) -> bytes:
    """Return a digest of the values of variables.

    The variables are those of this program, and those that `variables` names; None stands for all variables.
    """
    own = {name for name in environment if variables is None or name.startswith("RECIPE_")}
    values = [(name, environment.get(name)) for name in sorted(own.union(variables or ()))]
    return _digest_of(values) if values else b""


def _digest_of(value: object) -> bytes:
    """Return a digest of words or values, which may be secrets that no file may contain."""
    from _blake2 import blake2b  # imports faster than `hashlib`

    return bytes(blake2b(repr(value).encode("utf-8", "surrogateescape"), digest_size=_DIGEST_BYTES).digest())


def _machine() -> tuple[Any, ...]:
    """Return what identifies the machine: the boot, the usable CPUs, the files of CPU and GPU, and MIG slices."""
    here = os.uname()
    boot = _text("/proc/sys/kernel/random/boot_id") or here.nodename
    quota = _text("/sys/fs/cgroup/cpu.max")
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    devices = map(_device, ("/proc/cpuinfo", "/proc/driver/nvidia", "/dev/nvidia0"))
    return boot, here.sysname, here.machine, cpus, quota, *devices, _slices()


def _slices() -> tuple[Any, ...]:
    """Return the folders in which the driver lists the MIG slices of each GPU: a new layout has new folders.

    Source: NVIDIA, Multi-Instance GPU User Guide, "Device Nodes and Capabilities".
    """
    return tuple(sorted((folder, _device(folder)) for folder, _, _ in os.walk(_CAPABILITIES)))


def _text(name: str) -> str:
    try:
        with open(name) as file:
            return file.read()
    except OSError:
        return ""


def _device(name: str) -> tuple[int, int] | None:
    """Return the device and inode of a file in /proc or /dev, whose times mean nothing."""
    try:
        place: tuple[int, int] = _place(os.stat(name))
    except OSError:
        return None
    return place


def _essential(argv: Sequence[str]) -> list[str]:
    """Return the words of a command line that can change the result of a build."""
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif word not in _FLAGS and not word.startswith("--jobs=") and not (word[:2] == "-j" and word[2:].isdigit()):
            kept.append(word)
    return kept
