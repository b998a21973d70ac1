"""The memory of a step in a process of its own: anonymous pages and mapped pages, sampled while the step runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.step import Step

ROOT = Path(__file__).parent.parent.parent
_INTERVAL = 0.004
_PROGRAM = """
import json, sys
from importlib import import_module
from pathlib import Path

module, name, options, out, *inputs = sys.argv[1:]
step = getattr(import_module(module), name)(**json.loads(options))
print(step.run(Path(out), **{key: Path(path) for key, path in (each.split("=", 1) for each in inputs)}))
"""


@dataclass(frozen=True)
class Peak:
    """The largest numbers of bytes that a process had in memory, how long it ran, and what it printed.

    `anonymous` counts pages that only this process has: its heap. `mapped` counts pages of mapped files, which the
    system drops where memory is short.
    """

    anonymous: int
    mapped: int
    seconds: float
    printed: str


def of_step(step: type[Step], out: Path, options: str = "{}", group: Path | None = None, **inputs: Path) -> Peak:
    """Run a step with options, as JSON, in a new process, in a control group if any, and return its peak."""
    words = [sys.executable, "-c", _PROGRAM, step.__module__, step.__name__, options, str(out)]
    return of_command([*words, *(f"{name}={path}" for name, path in inputs.items())], group)


@contextlib.contextmanager
def group_or_skip(limit: int) -> Iterator[Path]:
    """Make a control group whose processes get `limit` bytes of memory; skip the test where none can be made."""
    with contextlib.ExitStack() as stack:
        try:
            group = stack.enter_context(_group_of(limit))
        except OSError as error:
            pytest.skip(f"no control group that limits memory can be made here: {error}")
        yield group


@contextlib.contextmanager
def _group_of(limit: int) -> Iterator[Path]:
    """Make a control group whose processes get `limit` bytes of memory. Raises OSError where none can be made.

    Control groups of version 1 have a folder for memory; those of version 2 need the controller of memory in the
    parent, and the file `memory.max` is missing otherwise.
    """
    version_1 = Path("/sys/fs/cgroup/memory")
    parent, name = (version_1, "memory.limit_in_bytes") if version_1.is_dir() else (version_1.parent, "memory.max")
    group = parent / f"recipe-{os.getpid()}"
    group.mkdir()
    try:
        with (group / name).open("r+") as file:  # no new file, where the folder belongs to no control group
            file.write(str(limit))
        yield group
    finally:
        group.rmdir()


def of_command(
    words: list[str],
    group: Path | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path = ROOT,
) -> Peak:
    """Run a command in a folder, and return the peak of its process.

    Raises CalledProcessError where the command fails.
    """
    if group is not None:
        words = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *words]
    begin = time.monotonic()
    most = {"RssAnon": 0, "RssFile": 0}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            for name, size in _sizes(status.read_text()).items():
                most[name] = max(most[name], size)
            time.sleep(_INTERVAL)
        seconds = time.monotonic() - begin
        output.seek(0)
        printed = output.read()
    if process.returncode:
        print(printed)
        raise subprocess.CalledProcessError(process.returncode, words, printed)
    return Peak(most["RssAnon"], most["RssFile"], seconds, printed)


def _sizes(status: str) -> dict[str, int]:
    """Return the sizes of a process in bytes; none for a process that has just ended."""
    lines = (line.split() for line in status.splitlines() if line.startswith(("RssAnon:", "RssFile:")))
    return {name.rstrip(":"): int(kib) << 10 for name, kib, _ in lines}
