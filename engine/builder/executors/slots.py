"""How many jobs run at once, and the memory that they share."""

from __future__ import annotations

import os

from engine.machine import cpu

_MEMORY_PER_JOB = 4 << 30
"""Bytes of memory that each of several parallel jobs may need.

The export of MiniLM needs about 1 GB at its peak, and the export of BERT-large needs about 4 GB.
"""


def default() -> int:
    """Return how many jobs run at once by default, by the number of CPUs and the memory."""
    return max(1, min(len(cpu.usable()), (memory() or _MEMORY_PER_JOB) // _MEMORY_PER_JOB))


def memory() -> int:
    """Return the bytes of memory that this machine has; 0 if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
