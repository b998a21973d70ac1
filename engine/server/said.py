"""What a server's log says went wrong, in plain words."""

from __future__ import annotations

import re
from collections.abc import Sequence

TAIL_BYTES = 200_000
"""So much of the end of a log is read."""
_SHOWN = 12
_KILLED = 137
_POLLED = re.compile(r"Poll failed for model directory '([^']+)': (.+)")
_TAKEN = re.compile(r"(?i)already in use|port is already allocated")
_SILENT = re.compile(r"^\s*[+|]|\.cc:\d+\]\s*$")
"""Tables, and the lines above them."""
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
        "/dev/shm is full: the python backend hands tensors around there",  # noqa: S108 - the user's
    ),
    (re.compile(r"(?i)serialization assertion .*version|engine plan .*not compatible"),
     "the engine was built by another TensorRT than the server's"),
)  # fmt: skip


def tail(text: str) -> list[str]:
    """Return the last lines of a log that say something: no tables."""
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not _SILENT.search(line)][-_SHOWN:]


def polled(text: str) -> dict[str, str]:
    """Return the models that the server could not even read -> its reason."""
    return {match[1].rpartition("/")[2]: match[2].rstrip('"') for match in _POLLED.finditer(text)}


def meaning(lines: Sequence[str]) -> str:
    """Return what lines of a log, or a model's reason, mean in plain words; empty where nobody knows."""
    for pattern, plain in _MEANINGS:
        for line in lines:
            match = pattern.search(line)
            if match is not None:
                return plain.format(*(match.groups() or ("",)))
    return ""


def of_end(code: int, lines: Sequence[str]) -> str:
    """Return what to think of a server that ended by itself."""
    if code == _KILLED:
        return "something killed it: the kernel does so where memory runs out (`dmesg` tells); serve it again"
    return meaning(lines) or "the log says more; serve it again"


def port_is_taken(text: str) -> bool:
    """Tell whether a server ended because another program has one of its ports."""
    return _TAKEN.search(text) is not None


def ended(code: int) -> str:
    """Return how a process ended, of its exit code."""
    return f"killed by signal {code - 128}" if code > 128 else f"exit {code}"  # noqa: PLR2004 - as shells count
