"""Diagnosis: the meaning of a Triton server's log, its exit code and its models' errors, in plain words."""

from __future__ import annotations

import re
from collections.abc import Sequence

TAIL_BYTES = 200_000
"""How many bytes at the end of a server's log are read."""
_SHOWN = 12
"""The largest number of lines of a server's log that an error shows."""
_SIGNALLED = 128
"""A shell's exit code of a process that signal n ended is 128 + n."""
_KILLED, _BUS_ERROR = _SIGNALLED + 9, _SIGNALLED + 7
"""The exit codes of a process that SIGKILL ended, and SIGBUS: it wrote to a page of /dev/shm that has no room."""
_POLLED = re.compile(r"Poll failed for model directory '([^']+)': (.+)")
_TAKEN = re.compile(r"(?i)already in use|port is already allocated")
_SILENT = re.compile(r"^\s*[+|]|\.cc:\d+\]\s*$")
"""Lines of a server's log without a message: rows of tables, and the empty log lines above the tables."""
_FULL = (
    "/dev/shm is full: each instance of the python backend needs 1 MB of it and room for its tensors; make it larger"  # noqa: S108
    " (docker: --shm-size=1g; Kubernetes: an emptyDir of medium Memory)"
)
_MEANINGS = (
    (re.compile(r"No module named '([\w.]+)'"), "the Python of the server lacks {}: install it there"),
    (_TAKEN, "another program took the port"),
    (re.compile(r"no GPUs are available"), "the model is for a GPU, and the server sees none"),
    (
        re.compile(r"(?i)unable to find (?:shared library|backend)|'(libtriton_\w+\.so)'"),
        "the server lacks the backend of this model",
    ),
    (
        re.compile(r"(?i)No space left on device|Failed to (?:initialize|create) shared memory"),
        _FULL,
    ),
    (re.compile(r"(?i)serialization assertion .*version|engine plan .*not compatible"),
     "the engine was built by another version of TensorRT than the server has"),
)  # fmt: skip


def tail(text: str) -> list[str]:
    """Return the last lines of a server's log, without rows of tables and empty lines."""
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not _SILENT.search(line)][-_SHOWN:]


def unreadable_models(text: str) -> dict[str, str]:
    """Return the models whose folder or configuration the server could not read, each with the server's reason."""
    return {match[1].rpartition("/")[2]: match[2].rstrip('"') for match in _POLLED.finditer(text)}


def meaning(lines: Sequence[str]) -> str:
    """Return in plain words what lines of a server's log mean; empty where no line holds a known message."""
    for pattern, plain in _MEANINGS:
        for line in lines:
            match = pattern.search(line)
            if match is not None:
                return plain.format(*(match.groups() or ("",)))
    return ""


def hint_after_end(code: int, lines: Sequence[str]) -> str:
    """Return the hint for a server that ended by itself, by its exit code and the last lines of its log."""
    if code == _KILLED:
        return "the server was killed; if memory ran out, the kernel did it (see `dmesg`): start the server again"
    if code == _BUS_ERROR:
        return _FULL
    return meaning(lines) or "the server's log says more; start the server again"


def port_is_taken(text: str) -> bool:
    """Tell whether the log says that another program has one of the server's ports."""
    return _TAKEN.search(text) is not None


def ending(code: int) -> str:
    """Return in words how a process with the exit code `code` ended: "exit 1" or "killed by signal 9"."""
    return f"killed by signal {code - _SIGNALLED}" if code > _SIGNALLED else f"exit {code}"
