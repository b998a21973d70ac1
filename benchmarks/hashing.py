"""The speed of digests of a file in the page cache, compared with reading the file and with copying memory."""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import recipe_program as program
from timing import machine, table, times

CHUNK = 1 << 20
OURS = "engine.digest.of_file (xxh3_128)"


def main() -> None:
    """Measure in turns and print the table. All calls run in one process, whose start is not timed."""
    options = _options()
    size = options.mib << 20
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        path = Path(scratch) / "file"
        _fill(path, size)
        contenders, missing = _contenders(path, size)
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        names = list(contenders)
        for number in range(options.runs + 1):
            first = number % len(names)
            for name in (*names[first:], *names[:first]):
                started = time.perf_counter()
                contenders[name]()
                if number:  # the first round warms up
                    seconds[name].append(time.perf_counter() - started)
    _print(seconds, missing, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size of the file in MiB; it must fit the memory (1024)")
    parser.add_argument("--runs", type=int, default=7, help="rounds (7)")
    parser.add_argument("--folder", type=Path, help="folder for the file (the system's temporary folder)")
    return parser.parse_args()


def _fill(path: Path, size: int) -> None:
    block = os.urandom(CHUNK)
    with open(path, "wb") as file:
        file.writelines(block for _ in range(size // CHUNK))


def _contenders(path: Path, size: int) -> tuple[dict[str, Callable[[], object]], list[str]]:
    """Return the functions to time, and the names of packages that are not installed."""
    source, target = memoryview(path.read_bytes()), memoryview(bytearray(size))

    def copy() -> None:
        target[:] = source

    functions: dict[str, Callable[[], object]] = {
        "memory copied": copy,
        "plain read": lambda: _stream(path, lambda _: None),
        OURS: _ours(path),
    }
    missing = []
    try:
        import blake3

        functions["blake3, one thread"] = lambda: _stream(path, blake3.blake3().update)
    except ImportError:
        missing.append("blake3")
    functions["sha256"] = lambda: _stream(path, hashlib.sha256().update)
    return functions, missing


def _ours(path: Path) -> Callable[[], object]:
    try:
        from engine import digest
    except ImportError:
        import sys

        sys.path.append(str(program.ROOT))
        from engine import digest
    return lambda: digest.of_file(path)


def _stream(path: Path, take: Callable[[memoryview], object]) -> None:
    """Read a file into one buffer, chunk by chunk, as `of_file` does."""
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            take(view[:count])


def _print(seconds: dict[str, list[float]], missing: list[str], options: argparse.Namespace) -> None:
    gigabytes = (options.mib << 20) / 1e9
    speeds = {name: gigabytes / median(each) for name, each in seconds.items()}
    rows = [
        [
            name,
            f"{speed:.1f} GB/s",
            f"{gigabytes / min(seconds[name]):.1f} GB/s",
            times(speed / speeds["plain read"]),
            times(speed / speeds["memory copied"]),
        ]
        for name, speed in speeds.items()
    ]
    rows += [[name, f"not installed: pip install {name}", "", "", ""] for name in missing]
    print(table([f"{options.mib} MiB", "median", "best", "of the plain read", "of the copy"], rows))
    print(f"\nEach method ran {options.runs} times on one thread. {machine()}.")


if __name__ == "__main__":
    main()
