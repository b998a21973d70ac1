"""The no-op path: is the last plan still true? Entered first, imports next to nothing."""

from __future__ import annotations

import marshal
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

FORMAT = 2
_TICK_NS = 20_000_000
"""Two writes within one tick of the file system's clock may share a time stamp (Linux: 4-10 ms, by CONFIG_HZ)."""
_COARSE_NS = 2_000_000_000
"""The coarsest time stamps in use are FAT's, of two seconds."""
_VALUED = {"-j", "--jobs"}
_FLAGS = {"--json"}
"""What changes how a build runs or speaks, but not what it is."""


def answer(argv: Sequence[str]) -> int | None:
    """Print what an up-to-date build prints and return its exit code; None where a real look is due."""
    started = time.perf_counter()
    path = _path(argv)
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            snapshot = marshal.loads(file.read())  # noqa: S302 - our own file, in the user's own cache
        if snapshot["identity"] != _identity(argv):
            return None
    except (OSError, ValueError, EOFError, TypeError, KeyError):
        return None
    if not all(_row(name) == row for name, row in snapshot["rows"]):
        return None
    if not all(os.path.realpath(name) == target for name, target in snapshot["links"]):
        return None
    seconds = f"{time.perf_counter() - started:.3f}"
    json = "--json" in argv
    if not json:
        sys.stderr.write(snapshot["talk"].replace("\0", seconds))
        sys.stderr.flush()
    sys.stdout.write(snapshot["json" if json else "data"].replace("\0", seconds))
    sys.stdout.flush()
    return int(snapshot["exit"])


def keep(
    argv: Sequence[str],
    *,
    inputs: Iterable[str],
    outputs: Iterable[str],
    links: Iterable[tuple[str, str]],
    began_ns: int,
    code: int,
    talk: str,
    data: str,
    json: str,
) -> None:
    """Remember a plan in which every job is cached (or waits).

    `inputs` are the files and folders that fed it, `outputs` those that the build wrote; `links` are paths as the
    recipe says them with where they lead. `began_ns` is when the first input was read. In the texts a NUL character
    stands for the seconds of the answering run. Nothing is kept where an input changed since `began_ns`, for then it
    may differ from what was read.
    """
    path = _path(argv)
    if path is None:
        return
    fed = [(name, _row(name)) for name in sorted(set(inputs))]
    if any(row is not None and max(row[3], row[4]) > began_ns - _TICK_NS for _, row in fed):
        return
    names = sorted(set(outputs))
    _wait_for_tick(names)
    made = [(name, _row(name)) for name in names]
    now = time.time_ns()
    if any(row is None or (row[4] % 1_000_000_000 == 0 and now - row[4] < _COARSE_NS) for _, row in made):
        return
    snapshot = {
        "identity": _identity(argv),
        "rows": fed + made,
        "links": list(links),
        "exit": code,
        "talk": talk,
        "data": data,
        "json": json,
    }
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(marshal.dumps(snapshot))
        os.replace(temporary, path)
    except OSError:
        return  # a snapshot only saves time


def _wait_for_tick(names: Iterable[str]) -> None:
    """Wait until a later change of these files would show in their time stamps."""
    newest = max((row[4] for name in names if (row := _row(name)) is not None), default=0)
    rest = newest + _TICK_NS - time.time_ns()
    if 0 < rest <= _TICK_NS:
        time.sleep(rest / 1e9)


def _row(name: str) -> tuple[int, int, int, int, int] | None:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _identity(argv: Sequence[str]) -> tuple[Any, ...]:
    """Return all that names a plan, but the content of files."""
    environment = sorted(item for item in os.environ.items() if item[0].startswith("RECIPE_"))
    return (
        FORMAT,
        tuple(_essential(argv)),
        os.getcwd(),
        tuple(environment),
        sys.prefix,
        _machine(),
        sys.version,
        tuple(sys.path),
    )


def _machine() -> tuple[str, int]:
    """Return what changes with the machine under us: the boot, and the CPUs that we may use."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read()
    except OSError:
        boot = os.uname().nodename
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return boot, count


def _essential(argv: Sequence[str]) -> list[str]:
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif word not in _FLAGS and not word.startswith("--jobs=") and not (word[:2] == "-j" and word[2:].isdigit()):
            kept.append(word)
    return kept


def _path(argv: Sequence[str]) -> str | None:
    """Return where the snapshot of this command line lies."""
    from zlib import crc32

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
