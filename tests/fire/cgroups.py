"""Control groups of a test's own, of version 1 and 2: processes in one have little memory, or few processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path("/sys/fs/cgroup")
_FILES = {
    "memory": ("memory.limit_in_bytes", "memory.max"),
    "pids": ("pids.max", "pids.max"),
}
"""The file with the limit of a controller, in version 1 and in version 2."""
_PATIENCE = 30.0


@contextlib.contextmanager
def limited(controller: str, limit: int) -> Iterator[tuple[str, ...]]:
    """Make a group with a limit; yield the command that starts another command in it. Skips where it cannot."""
    first, second = _FILES[controller]
    is_first = (_ROOT / controller).is_dir()
    parent = _ROOT / controller if is_first else _ROOT
    group = parent / f"recipe-fire-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"a control group cannot be made here: {error}")
    try:
        try:
            (group / (first if is_first else second)).write_text(str(limit))
        except OSError as error:
            pytest.skip(f"the controller {controller} of control groups cannot be used here: {error}")
        yield ("sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh")
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """Remove a group as soon as its last process has ended."""
    end = time.monotonic() + _PATIENCE
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            assert time.monotonic() < end, f"processes are left in {group}"
            time.sleep(0.05)
