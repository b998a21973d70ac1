"""The keeper of a server: a process of its own, so that the server ends with whoever started it, and leaves nothing."""

# Run as a file, `python -I -S keeper.py FOLDER LOCK`: it knows nothing of the package around it. `server.py` starts it.
# What it reads on its standard input is all that it is told: "q" or the end asks for a clean stop, "k" for a quick one;
# its standard error is the server's log. It takes in what the server leaves behind; should the keeper itself be killed,
# the kernel ends the server.

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PLAN = "plan.json"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Triton's python backend keeps its regions
_POLL_SECONDS = 0.1
_CLEANING_SECONDS = 60
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
"""prctl(2) of Linux."""


def main(folder: Path, lock: int) -> int:
    """Keep a server until it ends or is asked to; return its exit code, 128 + n where signal n ended it."""
    plan = json.loads((folder / PLAN).read_text("utf-8"))
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    kernel = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if kernel is not None:
        kernel.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    own = os.getpid()

    def end_with_keeper() -> None:
        if kernel is not None:
            kernel.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != own:
                os._exit(1)

    server = subprocess.Popen(  # noqa: S603 - what `server.py` put together
        plan["command"], env=plan["environment"], cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr,
        preexec_fn=end_with_keeper, pass_fds=(lock,),  # noqa: PLW1509 - there are no threads here
    )  # fmt: skip
    sys.stdout.write(f"{server.pid}\n")
    sys.stdout.flush()
    try:
        _watch(server, stopping, float(plan["patience"]))
    finally:
        server.kill()
        server.wait()
        _end_the_rest()
        clear(plan)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def clear(plan: Mapping[str, Any]) -> None:
    """Take away what a dead server left: its container, its shared memory, its folders."""
    for command in plan["afterwards"]:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=_CLEANING_SECONDS, check=False)  # noqa: S603 - as above
    with contextlib.suppress(OSError):
        for left in SHARED_MEMORY.glob(f"{plan['shared_memory']}*"):
            left.unlink(missing_ok=True)
    for folder in plan["folders"]:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(server: subprocess.Popen[bytes], stopping: list[int], patience: float) -> None:
    """Return when the server ended, or ask it to once the other side asks or is gone."""
    deadline = None
    heard = True
    while server.poll() is None:
        asked = b""
        if heard and select.select([0], [], [], _POLL_SECONDS)[0]:
            asked = os.read(0, 1)
            heard = asked != b""
        elif not heard:
            time.sleep(_POLL_SECONDS)
        if asked == b"k" or (deadline is not None and time.monotonic() > deadline):
            server.kill()
            server.wait()
        elif deadline is None and (asked == b"q" or not heard or stopping):
            deadline = time.monotonic() + patience
            server.terminate()


def _end_the_rest() -> None:
    """End the processes that a server left, which are ours by now: Triton starts one for each python model."""
    while True:
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    """Return the processes whose parent this is."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            if parent == os.getpid():
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
