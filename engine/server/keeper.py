"""The keeper: a process that starts a server, ends the server when the program that serves ends, and then cleans up."""

# `server.py` starts this file as `python -I -S keeper.py FOLDER LOCK`; the keeper imports nothing of the package. On
# the keeper's standard input "q" or the end of the file asks for a clean stop, "k" for an immediate one. The keeper's
# standard error is the server's log. Processes that the server leaves behind become children of the keeper, which ends
# them. Where the keeper itself is killed, the kernel ends the server.

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
"""How many seconds each command may take that cleans up after a server."""
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
"""The numbers of the options PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of Linux's prctl(2)."""


def main(folder: Path, lock: int) -> int:
    """Run a server until it ends or is asked to end; return its exit code, 128 + n where signal n ended it."""
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

    environment = {name: os.environ[name] if value is None else value for name, value in plan["environment"].items()}
    server = subprocess.Popen(  # noqa: S603 - what `server.py` put together
        plan["command"], env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr,
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
    """Remove the container, the shared memory and the folders of a dead server."""
    for command in plan["afterwards"]:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=_CLEANING_SECONDS, check=False)  # noqa: S603 - as above
    with contextlib.suppress(OSError):
        for left in SHARED_MEMORY.glob(f"{plan['shared_memory']}*"):
            left.unlink(missing_ok=True)
    for folder in plan["folders"]:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(server: subprocess.Popen[bytes], stopping: list[int], patience: float) -> None:
    """Wait until the server has ended. "q", the end of standard input and SIGTERM ask it to; it is killed if late."""
    deadline = None
    is_open = True  # whether the parent still holds the other end of standard input
    while server.poll() is None:
        command = b""
        if is_open and select.select([0], [], [], _POLL_SECONDS)[0]:
            command = os.read(0, 1)
            is_open = command != b""
        elif not is_open:
            time.sleep(_POLL_SECONDS)
        if command == b"k" or (deadline is not None and time.monotonic() > deadline):
            server.kill()
            server.wait()
        elif deadline is None and (command == b"q" or not is_open or stopping):
            deadline = time.monotonic() + patience
            server.terminate()


def _end_the_rest() -> None:
    """Kill the processes of python models that a dead server left behind, which are children of the keeper now."""
    while True:
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            if parent == os.getpid():
                children.append(int(stat.parent.name))
    return children


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
