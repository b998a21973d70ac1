"""What a run of the tests makes once for all its processes: the first that asks makes it, and the others wait."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

_FOLDER = "RECIPE_TESTS_ONCE"
"""The variable that names the folder; `tests/conftest.py` begins it before the processes of pytest-xdist start."""


def begin() -> None:
    """Make the folder of this run, which goes as the process ends."""
    os.environ[_FOLDER] = tempfile.mkdtemp(prefix="recipe-tests-once-")
    atexit.register(shutil.rmtree, os.environ[_FOLDER], ignore_errors=True)


def made(name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder `name`, which `make` fills when it is first asked for: do not write into it."""
    if _FOLDER not in os.environ:
        begin()
    folder = Path(os.environ[_FOLDER], name)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            half = folder.with_suffix(".half")
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            make(half)
            half.rename(folder)
    return folder
