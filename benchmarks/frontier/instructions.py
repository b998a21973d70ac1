"""Instructions: those of this machine's CPU that decide how int8 models run, and `target.isa` for our recipes."""

from __future__ import annotations

from engine.machine import cpu

TARGETS = ("avx2", "avx512", "avx512_vnni", "avx_vnni", "amx")
"""The values of `target.isa` for CPUs of x86."""
_NAMED = frozenset({"avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8"})


def here() -> frozenset[str]:
    """Return the instructions of this machine's CPU that a table names."""
    return _NAMED & frozenset(cpu.description().get("flags", "").split())


def target() -> str | None:
    """Return the `target.isa` that a user of this machine writes: "avx2" on a CPU without VNNI, else none."""
    return "avx2" if cpu.lacks_vnni() else None
