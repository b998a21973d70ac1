"""perf_analyzer for tests: a real one, of the wheel of tritonclient 2.51, with the CUDA runtime that it loads.

perf_analyzer lies in the environment that RECIPE_TRITON_VENV names, or in pytest's cache. Debian's package libb64-0d
must be installed.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

from engine.client import perf_analyzer

WHEELS = ("tritonclient==2.51.0", "nvidia-cuda-runtime-cu12==12.9.79")
_RUNTIME = "nvidia/cuda_runtime/lib"


class Unavailable(Exception):  # noqa: N818 - a reason to skip, not an error
    """The reason why this machine has no perf_analyzer."""


def program(cache: Path, scratch: Path) -> Path:
    """Return a program `perf_analyzer`, in a folder of its own under `scratch`, that finds its libraries."""
    files = _beside_the_server() or _installed(cache)
    wrapper = scratch / "perf-analyzer" / perf_analyzer.NAME
    wrapper.parent.mkdir()
    binary, libraries = (shlex.quote(str(each)) for each in files)
    wrapper.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {binary} "$@"\n')
    wrapper.chmod(0o755)
    usable, reason = perf_analyzer.find(str(wrapper))
    if usable is None:
        raise Unavailable(reason)
    return wrapper


def _beside_the_server() -> tuple[Path, Path] | None:
    environment = os.environ.get("RECIPE_TRITON_VENV")
    binary = Path(environment or "/nowhere") / "bin" / perf_analyzer.NAME
    runtime = next(Path(environment or "/nowhere").glob(f"lib/python3.*/site-packages/{_RUNTIME}"), None)
    return (binary, runtime) if binary.is_file() and runtime is not None else None


def _installed(cache: Path) -> tuple[Path, Path]:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise Unavailable("its wheel is made for Linux on x86-64 only")
    place = cache / "packages"
    with (cache / "lock").open("w") as lock:  # of several test processes, one installs it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "ready").is_file():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), *WHEELS]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            if done.returncode:
                raise Unavailable(f"pip cannot install {WHEELS[0]}: {(done.stderr.splitlines() or ['no output'])[-1]}")
            (cache / "ready").touch()
    return place / "bin" / perf_analyzer.NAME, place / _RUNTIME
